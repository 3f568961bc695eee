import { Dropdown, DropdownItem, DropdownList, MenuToggle } from "@patternfly/react-core";
import EllipsisVIcon from "@patternfly/react-icons/dist/esm/icons/ellipsis-v-icon";
import { useState } from "react";
import type { VmStatus } from "../../api/types";
import { useTexts } from "../../texts/texts";
import { isPossible, VM_ACTIONS, type VmAction } from "./actions";

/** Menu with the actions on a VM. */
export function VmMenu(props: { vm: VmStatus; onAction: (action: VmAction) => void }) {
  const { t } = useTexts();
  const [open, setOpen] = useState(false);
  const name = props.vm.config.name;
  return (
    <Dropdown
      isOpen={open}
      onOpenChange={setOpen}
      onSelect={() => setOpen(false)}
      popperProps={{ position: "right" }}
      toggle={(ref) => (
        <MenuToggle ref={ref} variant="plain" isExpanded={open} onClick={() => setOpen(!open)} aria-label={t("vm.menu", { name })} icon={<EllipsisVIcon />} />
      )}
    >
      <DropdownList>
        {VM_ACTIONS.map((action) => (
          <DropdownItem key={action} isDisabled={!isPossible(action, props.vm)} onClick={() => props.onAction(action)}>
            {t(`vm.${action}`)} …
          </DropdownItem>
        ))}
      </DropdownList>
    </Dropdown>
  );
}
