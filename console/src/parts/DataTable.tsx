/** A table of things of one kind: sortable, and a card for each of them where the page is narrow. */
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useState, type ReactNode } from "react";
import { useTexts } from "../texts/texts";
import { sortedRows } from "./sorted_rows";

export interface Column<T> {
  title: string;
  cell: (row: T) => ReactNode;
  /** What rows are sorted by; a column without it does not sort. */
  sort?: (row: T) => string | number;
  /** Numbers stand at the right. */
  isNumber?: boolean;
}

export interface DataTableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  id: (row: T) => string;
  /** Which column sorts at first, by its place. */
  sortedBy?: number;
  descending?: boolean;
  isSelected?: (row: T) => boolean;
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { t } = useTexts();
  const [sorted, setSorted] = useState<{ by: number | undefined; direction: "asc" | "desc" }>({
    by: props.sortedBy,
    direction: props.descending ? "desc" : "asc",
  });
  const by = sorted.by === undefined ? undefined : props.columns[sorted.by]?.sort;
  const rows = by ? sortedRows(props.rows, by, sorted.direction === "desc") : props.rows;
  return (
    <div className="table-frame">
      <Table aria-label={props.label} variant="compact" gridBreakPoint="grid-md">
        <Thead>
          <Tr>
            {props.columns.map((column, at) => (
              <Th
                key={column.title || at}
                className={column.isNumber ? "number" : undefined}
                modifier="nowrap"
                screenReaderText={column.title === "" ? t("column.action") : undefined}
                sort={
                  column.sort && {
                    columnIndex: at,
                    sortBy: { index: sorted.by, direction: sorted.direction },
                    onSort: (_event, index, direction) => setSorted({ by: index, direction }),
                  }
                }
              >
                {column.title}
              </Th>
            ))}
          </Tr>
        </Thead>
        <Tbody>
          {rows.map((row) => (
            <Tr key={props.id(row)} isRowSelected={props.isSelected?.(row)}>
              {props.columns.map((column, at) => (
                <Td key={column.title || at} dataLabel={column.title} className={column.isNumber ? "number" : undefined}>
                  {column.cell(row)}
                </Td>
              ))}
            </Tr>
          ))}
        </Tbody>
      </Table>
    </div>
  );
}
