/** Sortable table. In narrow windows each row is shown as a card. */
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useState, type ReactNode } from "react";
import { useTexts } from "../texts/texts";
import { sortedRows } from "./sorted_rows";

export interface Column<T> {
  title: string;
  cell: (row: T) => ReactNode;
  /** Sort key of a row; a column without it is not sortable. */
  sort?: (row: T) => string | number;
  /** Aligns the column to the right. */
  isNumber?: boolean;
}

export interface DataTableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  id: (row: T) => string;
  /** Index of the column that is sorted initially. */
  sortedBy?: number;
  descending?: boolean;
  isSelected?: (row: T) => boolean;
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { t } = useTexts();
  const [sorting, setSorting] = useState<{ column: number | undefined; direction: "asc" | "desc" }>({
    column: props.sortedBy,
    direction: props.descending ? "desc" : "asc",
  });
  const sortKey = sorting.column === undefined ? undefined : props.columns[sorting.column]?.sort;
  const rows = sortKey ? sortedRows(props.rows, sortKey, sorting.direction === "desc") : props.rows;
  return (
    <div className="table-frame">
      <Table aria-label={props.label} variant="compact" gridBreakPoint="grid-md">
        <Thead>
          <Tr>
            {props.columns.map((column, index) => (
              <Th
                key={column.title || index}
                className={column.isNumber ? "number" : undefined}
                modifier="nowrap"
                screenReaderText={column.title === "" ? t("column.action") : undefined}
                sort={
                  column.sort && {
                    columnIndex: index,
                    sortBy: { index: sorting.column, direction: sorting.direction },
                    onSort: (_event, index, direction) => setSorting({ column: index, direction }),
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
              {props.columns.map((column, index) => (
                <Td key={column.title || index} dataLabel={column.title} className={column.isNumber ? "number" : undefined}>
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
