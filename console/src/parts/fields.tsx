/** Fields of forms. What is left empty is taken out of desired state. */
import { FormGroup, FormHelperText, FormSelect, FormSelectOption, HelperText, HelperTextItem, TextInput } from "@patternfly/react-core";
import { useId } from "react";
import { bytesOf } from "../units/units";

interface FieldProps {
  label: string;
  help?: string;
  value: string;
  onChange: (value: string) => void;
}

/** A whole number that is not negative, or a size like `100 MiB`. */
export function NumberField(props: FieldProps & { isSize?: boolean; placeholder?: string }) {
  const id = useId();
  const bad = numberOf(props.value) === undefined && !(props.isSize && bytesOf(props.value) !== undefined);
  return (
    <FormGroup label={props.label} fieldId={id} className="field">
      <TextInput
        id={id}
        inputMode={props.isSize ? "text" : "numeric"}
        autoComplete="off"
        value={props.value}
        placeholder={props.placeholder}
        validated={bad ? "error" : "default"}
        onChange={(_event, value) => props.onChange(value)}
      />
      <Help text={props.help} bad={bad} />
    </FormGroup>
  );
}

export function ChoiceField(props: FieldProps & { options: [value: string, label: string][] }) {
  const id = useId();
  return (
    <FormGroup label={props.label} fieldId={id} className="field">
      <FormSelect id={id} value={props.value} onChange={(_event, value) => props.onChange(value)}>
        {props.options.map(([value, label]) => <FormSelectOption key={value} value={value} label={label} />)}
      </FormSelect>
      <Help text={props.help} />
    </FormGroup>
  );
}

function Help(props: { text?: string; bad?: boolean }) {
  if (!props.text) return null;
  return (
    <FormHelperText>
      <HelperText>
        <HelperTextItem variant={props.bad ? "error" : "default"}>{props.text}</HelperTextItem>
      </HelperText>
    </FormHelperText>
  );
}

/** The number in a field: `null` if it is empty, nothing if it is no number. */
export function numberOf(value: string): number | null | undefined {
  const trimmed = value.trim();
  if (trimmed === "") return null;
  return /^[0-9]{1,15}$/.test(trimmed) ? Number(trimmed) : undefined;
}

/** What a number's field shows at first. */
export function fieldOf(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}
