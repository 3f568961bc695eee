//! Keys of `[power]`.

use crate::key::{optional, required};
use crate::{ChangeEffect, Form, Key};

/// Largest length of an idle state's name in bytes: `CPUIDLE_NAME_LEN` of Linux is 16, including
/// the terminating zero (include/linux/cpuidle.h).
const IDLE_STATE_BYTES_MAX: usize = 15;

pub(crate) const POWER: &[Key] = &[
    required(
        "plan",
        Form::OneOfKeywords(&["balanced", "high-performance", "power-saver", "custom"]),
        ChangeEffect::Live,
    ),
    optional("governor", Form::Name, ChangeEffect::Live),
    optional(
        "energy_preference",
        Form::OneOfKeywords(&["performance", "balance_performance", "balance_power", "power"]),
        ChangeEffect::Live,
    ),
    optional("performance_percent_min", Form::Number { min: 0, max: 100 }, ChangeEffect::Live),
    optional("performance_percent_max", Form::Number { min: 1, max: 100 }, ChangeEffect::Live),
    optional("turbo", Form::Flag, ChangeEffect::Live),
    optional(
        "idle_state_max",
        Form::SingleLineText { max: IDLE_STATE_BYTES_MAX },
        ChangeEffect::Live,
    ),
    optional("idle_latency_us_max", Form::Number { min: 0, max: 1_000_000 }, ChangeEffect::Live),
    optional("parking", Form::Flag, ChangeEffect::Live),
    optional("poll_us", Form::Number { min: 0, max: 10_000 }, ChangeEffect::Live),
    optional("vmq_high_percent", Form::Number { min: 50, max: 95 }, ChangeEffect::Live),
    optional("vmq_low_percent", Form::Number { min: 0, max: 65 }, ChangeEffect::Live),
];
