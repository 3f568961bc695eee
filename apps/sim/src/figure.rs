//! Published figures, and ours beside them.

use serde::{Deserialize, Serialize};

/// What a published figure is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Use {
    /// A parameter of the model was chosen so that it comes out.
    Calibration,
    /// No parameter was chosen by it.
    HeldOut,
    /// It is not published: it is what Suimon has to reach.
    Bar,
}

impl Use {
    /// In a table.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::HeldOut => "held out",
            Self::Bar => "own bar",
        }
    }
}

/// A published figure and ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Figure {
    /// The scenario's step.
    pub(crate) step: String,
    /// Of what.
    pub(crate) of: String,
    /// In the document's words.
    pub(crate) published: String,
    /// What came out of the model.
    pub(crate) ours: String,
    /// Whether they agree, within what the scenario allows.
    pub(crate) agrees: bool,
    /// What it is used for.
    #[serde(rename = "use")]
    pub(crate) used: Use,
}
