//! Ids of runs and plans, as clients give them.

/// Returns the first characters of an id given by a client, without control characters.
pub(crate) fn shown_id(id: &str) -> String {
    let plain = |of: char| if of.is_ascii_graphic() && of != '/' { of } else { '?' };
    id.chars().take(64).map(plain).collect()
}
