//! Editing of a host file that preserves formatting and comments.

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, Item, Table, value};

use super::advice::{RecommendedSetting, Value};

/// Host file that is being edited.
pub(super) struct HostFile {
    document: DocumentMut,
}

impl HostFile {
    pub(super) fn parse(text: &str) -> Result<Self> {
        Ok(Self { document: text.parse().context("the host file is not valid TOML")? })
    }

    pub(super) fn text(&self) -> String {
        self.document.to_string()
    }

    /// Sets a key in all tables that the target selects. Returns the number of tables in which the
    /// value changed.
    pub(super) fn set(&mut self, target: &RecommendedSetting) -> usize {
        match self.document.get_mut(target.table) {
            Some(Item::ArrayOfTables(tables)) => tables
                .iter_mut()
                .filter(|table| is_meant(table, target))
                .map(|table| set_in(table, target))
                .sum(),
            Some(Item::Table(table)) => set_in(table, target),
            _ => 0,
        }
    }
}

fn is_meant(table: &Table, target: &RecommendedSetting) -> bool {
    target.table_filter.as_ref().is_none_or(|(key, expected)| {
        table.get(key).and_then(Item::as_str) == Some(expected.as_str())
    })
}

fn set_in(table: &mut Table, target: &RecommendedSetting) -> usize {
    let new_value = match &target.value {
        Value::Text(text) => value(text.as_str()),
        Value::Number(number) => value(*number),
    };
    let mut keys: Vec<&str> = target.key.split('.').collect();
    let Some(last) = keys.pop() else { return 0 };
    let mut inner: &mut dyn toml_edit::TableLike = table;
    for key in keys {
        let next = inner.entry(key).or_insert_with(|| {
            let mut new_table = Table::new();
            new_table.set_dotted(true);
            Item::Table(new_table)
        });
        let Some(next) = next.as_table_like_mut() else { return 0 };
        inner = next;
    }
    let is_same =
        inner.get(last).is_some_and(|now| now.to_string().trim() == new_value.to_string().trim());
    if is_same {
        return 0;
    }
    inner.insert(last, new_value);
    1
}
