//! Published figures with the simulated results.

use serde::{Deserialize, Serialize};

/// Use of a published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigurePurpose {
    /// A parameter of the model was calibrated with the figure.
    Calibration,
    /// No parameter was calibrated with the figure.
    HeldOut,
    /// The figure is a target of Suimon instead of a published one.
    #[serde(rename = "bar")]
    Target,
}

impl FigurePurpose {
    /// Returns the word shown in tables.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::HeldOut => "held out",
            Self::Target => "own target",
        }
    }
}

/// Published figure with the simulated result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Name of the scenario's step or case that the figure concerns.
    pub step: String,
    /// Quantity that the figure states, such as a rate.
    #[serde(rename = "of")]
    pub quantity: String,
    /// Published value as stated in the document.
    pub published: String,
    /// Value that the model computed.
    #[serde(rename = "ours")]
    pub simulated_value: String,
    /// True if the result is within the tolerance of the scenario.
    pub agrees: bool,
    /// Use of the figure: calibration, held-out or bar.
    #[serde(rename = "use")]
    pub purpose: FigurePurpose,
}
