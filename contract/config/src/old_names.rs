//! Old names in objects: both names of a field are accepted, and the object has the new one
//! afterwards.

use serde_json::{Map, Value};

use crate::renames::{Rename, renames_of_schema};

/// Replaces old names in an object of this component by the new ones. If both names are present
/// with the same value, the old one is removed, without a call of `handle_rename`.
///
/// # Errors
/// Renames of which both names are present with different values; never empty. Of these, both names
/// remain in the table.
pub fn replace_old_names(
    schema: &str,
    table: &mut Map<String, Value>,
    mut handle_rename: impl FnMut(&'static Rename),
) -> Result<(), Vec<&'static Rename>> {
    let mut conflicts = Vec::new();
    for rename in renames_of_schema(schema) {
        let Some(old) = table.get(rename.old) else { continue };
        match table.get(rename.new) {
            Some(new) if new != old => conflicts.push(rename),
            Some(_) => {
                table.remove(rename.old);
            }
            None => {
                if let Some(value) = table.remove(rename.old) {
                    table.insert(rename.new.to_owned(), value);
                }
                handle_rename(rename);
            }
        }
    }
    if conflicts.is_empty() { Ok(()) } else { Err(conflicts) }
}

/// Returns the message about two names of one key with different values.
pub fn name_conflict_message(rename: &Rename) -> String {
    format!(
        "has another value than its old name `{}`, which means the same; remove `{}`",
        rename.old, rename.old
    )
}
