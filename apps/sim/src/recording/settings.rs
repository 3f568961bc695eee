//! Option `--set KEY=VALUE`.

use std::str::FromStr;

use anyhow::{Result, bail};
use serde::Serialize;

/// Kind of object that a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SettingSubject {
    Team,
    Vmq,
    Disk,
}

/// Changed setting of one kind of object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Setting {
    #[serde(rename = "of")]
    pub(crate) subject: SettingSubject,
    /// Name of the object that the setting changes; `None` for all objects of this kind.
    pub(crate) name: Option<String>,
    pub(crate) field: String,
    pub(crate) value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("give KEY=VALUE")?;
        let (subject, rest) =
            key.split_once('.').ok_or("the key has no `.`; give a key like team.algorithm")?;
        let subject = match subject {
            "team" => SettingSubject::Team,
            "vmq" => SettingSubject::Vmq,
            "disk" => SettingSubject::Disk,
            _ => {
                return Err(format!(
                    "no setting begins with `{subject}`; settings begin with team, vmq or disk"
                ));
            }
        };
        let (name, field) = match rest.rsplit_once('.') {
            Some((name, field)) => (Some(name.to_owned()), field),
            None => (None, rest),
        };
        Ok(Self { subject, name, field: field.to_owned(), value: value.to_owned() })
    }
}

impl Setting {
    /// Returns true if the setting applies to this object.
    pub(crate) fn applies_to(&self, subject: SettingSubject, name: &str) -> bool {
        self.subject == subject
            && self.name.as_deref().is_none_or(|setting_name| setting_name == name)
    }

    /// Returns the setting in the notation of the command line.
    pub(crate) fn text(&self) -> String {
        let subject = match self.subject {
            SettingSubject::Team => "team",
            SettingSubject::Vmq => "vmq",
            SettingSubject::Disk => "disk",
        };
        let name = self.name.as_ref().map(|name| format!(".{name}")).unwrap_or_default();
        format!("{subject}{name}.{}={}", self.field, self.value)
    }

    /// Parses the value as a number, `true`, `false`, `none` or text.
    ///
    /// # Errors
    /// The value does not match `T`.
    pub(crate) fn value<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        let value = match self.value.as_str() {
            "none" => serde_json::Value::Null,
            text => serde_json::from_str(text)
                .ok()
                .filter(|value: &serde_json::Value| value.is_number() || value.is_boolean())
                .unwrap_or_else(|| text.into()),
        };
        match serde_json::from_value(value) {
            Ok(value) => Ok(value),
            Err(error) => bail!("--set {}: {error}", self.text()),
        }
    }

    /// Returns the error for a key that settings of this subject do not have.
    pub(crate) fn unknown_setting_error<T>(&self, valid_settings: &str) -> Result<T> {
        bail!(
            "--set {}: no setting `{}` exists; the settings are {valid_settings}",
            self.text(),
            self.field
        )
    }
}
