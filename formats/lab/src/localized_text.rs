//! Texts in the two languages of reports.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Language in which reports are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English (`en`).
    #[default]
    En,
    /// Japanese (`ja`).
    Ja,
}

/// Text in English and Japanese.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalizedText {
    /// English version of the text.
    pub en: String,
    /// Japanese version of the text.
    pub ja: String,
}

impl LocalizedText {
    /// Creates a text from both versions.
    pub fn new(en: impl Into<String>, ja: impl Into<String>) -> Self {
        Self { en: en.into(), ja: ja.into() }
    }

    /// Creates a text that is the same in both languages, such as a name or a figure.
    pub fn untranslated(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { en: text.clone(), ja: text }
    }

    /// Returns the text in `language`.
    pub fn in_language(&self, language: Language) -> &str {
        match language {
            Language::En => &self.en,
            Language::Ja => &self.ja,
        }
    }

    /// Returns true if both versions are empty.
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
            _ => Err("the language must be `en` or `ja`"),
        }
    }
}
