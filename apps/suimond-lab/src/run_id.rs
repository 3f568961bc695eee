//! Ids of runs and plans, as clients give them.

/// Returns the first characters of an id given by a client, without control characters.
pub(crate) fn printable_id(id: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_graphic() && character != '/' { character } else { '?' }
    };
    id.chars().take(64).map(plain).collect()
}
