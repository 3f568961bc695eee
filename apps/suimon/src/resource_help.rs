//! Help texts about resources.

/// Returns a noun with its indefinite article: `a switch`, `an uplink`, `a NIC`.
pub(crate) fn with_article(noun: &str) -> String {
    let begins_with_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']) || noun.starts_with("SR-");
    let article = if begins_with_vowel { "an" } else { "a" };
    format!("{article} {noun}")
}

/// Returns the description of an argument that names a resource.
pub(crate) fn name_help(noun: &str) -> String {
    format!("Name of the {noun}")
}
