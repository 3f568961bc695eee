//! Numbers with nouns, for texts.

use std::fmt;

/// Number with its noun in the correct grammatical number: `1 member`, `2 members`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedNoun<'a> {
    number: u64,
    singular: &'a str,
    plural: Option<&'a str>,
}

impl<'a> CountedNoun<'a> {
    /// Creates a count of a noun with a regular plural (`s`). Numbers above `u64::MAX` saturate.
    pub fn new(number: impl TryInto<u64>, noun: &'a str) -> Self {
        Self { number: number.try_into().unwrap_or(u64::MAX), singular: noun, plural: None }
    }

    /// Creates a count of a noun, or of a noun with its verb, with an irregular plural: `1 member
    /// is`, `2 members are`.
    pub fn with_plural(number: impl TryInto<u64>, singular: &'a str, plural: &'a str) -> Self {
        Self { plural: Some(plural), ..Self::new(number, singular) }
    }
}

impl fmt::Display for CountedNoun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, singular, plural } = *self;
        match (number, plural) {
            (1, _) => write!(f, "1 {singular}"),
            (_, None) => write!(f, "{number} {singular}s"),
            (_, Some(plural)) => write!(f, "{number} {plural}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CountedNoun;

    #[test]
    fn a_noun_agrees_with_its_number() {
        let texts = [0, 1, 2].map(|number| CountedNoun::new(number, "member").to_string());
        assert_eq!(texts, ["0 members", "1 member", "2 members"]);
        let texts = [1, 7].map(|number| {
            CountedNoun::with_plural(number, "policy is", "policies are").to_string()
        });
        assert_eq!(texts, ["1 policy is", "7 policies are"]);
    }
}
