//! Text in the two languages of reports.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A language of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Japanese.
    Ja,
}

/// The same in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// English.
    pub en: String,
    /// Japanese.
    pub ja: String,
}

impl Words {
    /// Two texts of the same meaning.
    pub fn new(en: impl Into<String>, ja: impl Into<String>) -> Self {
        Self { en: en.into(), ja: ja.into() }
    }

    /// A name or a figure, which no language changes.
    pub fn same(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { en: text.clone(), ja: text }
    }

    /// One of them.
    pub fn in_language(&self, language: Language) -> &str {
        match language {
            Language::En => &self.en,
            Language::Ja => &self.ja,
        }
    }

    /// Whether neither says anything.
    pub fn is_empty(&self) -> bool {
        self.en.is_empty() && self.ja.is_empty()
    }
}

impl FromStr for Language {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "en" => Ok(Self::En),
            "ja" => Ok(Self::Ja),
            _ => Err("it is `en` or `ja`"),
        }
    }
}
