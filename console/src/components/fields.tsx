/** Form fields. An empty field removes the key from the configuration. */
import { FormGroup, FormHelperText, FormSelect, FormSelectOption, HelperText, HelperTextItem, TextInput } from "@patternfly/react-core";
import { useId } from "react";
import { parseBytes } from "../units/units";

interface FieldProps {
  label: string;
  help?: string;
  value: string;
  onChange: (value: string) => void;
}

/** Field for a non-negative integer or, with `isSize`, a size such as `100 MiB`. */
export function NumberField(props: FieldProps & { isSize?: boolean; placeholder?: string }) {
  const id = useId();
  const isInvalid = parseNumber(props.value) === undefined && !(props.isSize && parseBytes(props.value) !== undefined);
  return (
    <FormGroup label={props.label} fieldId={id} className="field">
      <TextInput
        id={id}
        inputMode={props.isSize ? "text" : "numeric"}
        autoComplete="off"
        value={props.value}
        placeholder={props.placeholder}
        validated={isInvalid ? "error" : "default"}
        onChange={(_event, value) => props.onChange(value)}
      />
      <Help text={props.help} isInvalid={isInvalid} />
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

function Help(props: { text?: string; isInvalid?: boolean }) {
  if (!props.text) return null;
  return (
    <FormHelperText>
      <HelperText>
        <HelperTextItem variant={props.isInvalid ? "error" : "default"}>{props.text}</HelperTextItem>
      </HelperText>
    </FormHelperText>
  );
}

/** Parses a field: `null` if it is empty, `undefined` if it is invalid. */
export function parseNumber(value: string): number | null | undefined {
  const trimmed = value.trim();
  if (trimmed === "") return null;
  return /^[0-9]{1,15}$/.test(trimmed) ? Number(trimmed) : undefined;
}

/** Returns the initial text of a number field. */
export function fieldText(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}
