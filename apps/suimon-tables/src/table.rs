//! Aligned tables of text.

use crate::columns::{Align, Column, Columns};

/// Table: a header and rows with the same number of cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    header: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns an empty table with these columns.
    pub(crate) fn new(columns: &Columns) -> Self {
        let title = |column: &Column| (column.title.to_owned(), column.align);
        Self { header: columns.columns.iter().map(title).collect(), rows: Vec::new() }
    }

    /// Adds a row with one cell per column.
    pub(crate) fn add_row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(cells.into());
    }

    /// Returns the table as text, with two spaces between columns and no trailing spaces.
    pub fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.header.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let titles = self.header.get(column).map(|(title, _)| title);
                cells.chain(titles).map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let titles: Vec<String> = self.header.iter().map(|(title, _)| title.clone()).collect();
        let mut text = String::new();
        for row in core::iter::once(&titles).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(&self.header) {
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                match align {
                    Align::Left => line.extend([cell.as_str(), &padding, "  "]),
                    Align::Right => line.extend([&padding, cell.as_str(), "  "]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Formats a value, or `–` for `None`.
pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&crate::columns::CLUSTER_MEMBERS);
        table.add_row(["a".into(), "12345678".into(), "–".into()]);
        table.add_row(["wider-name".into(), "0".into(), String::new()]);
        insta::assert_snapshot!(table.render(), @r"
        NODE          NUMBER  STATE
        a           12345678  –
        wider-name         0
        ");
    }
}
