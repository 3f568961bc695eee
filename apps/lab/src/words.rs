//! Text in the two languages of reports.

use serde::{Deserialize, Serialize};

/// A language of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    /// English.
    #[default]
    En,
    /// Japanese.
    Ja,
}

/// The same in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    pub(crate) en: String,
    pub(crate) ja: String,
}

impl Words {
    pub(crate) fn new(en: impl Into<String>, ja: impl Into<String>) -> Self {
        Self { en: en.into(), ja: ja.into() }
    }

    /// A name or a figure, which no language changes.
    pub(crate) fn same(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { en: text.clone(), ja: text }
    }

    pub(crate) fn in_language(&self, language: Language) -> &str {
        match language {
            Language::En => &self.en,
            Language::Ja => &self.ja,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.en.is_empty() && self.ja.is_empty()
    }
}
