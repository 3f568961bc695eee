//! State of the node's power management, and its use by the control thread.

mod control;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_contract::{PowerConfig, PowerEffect};
use suimon_ports::{PowerHost, StateStore, StateStoreError};
use suimon_power::EnergyMeter;

use super::events;
use super::settings_writer::{ApplyResult, SettingsWriter};
use crate::events::EventDraft;

/// Interval of the check for CPUs that came online or went offline, in units of the first retry
/// delay of devices (1 s by default). A check reads one small file.
const CPUS_LOOKED_AT_RARELY: u32 = 5;

/// State of power management: written by the control thread, read by status requests.
pub(crate) struct PowerTable(Mutex<Inner>);

pub(super) struct Inner {
    pub(super) settings_writer: SettingsWriter,
    pub(super) meter: EnergyMeter,
    /// Effect of the plan when it was last applied.
    pub(super) effect: PowerEffect,
    /// Last event about the effect; an equal one is not repeated.
    reported: Option<EventDraft>,
    /// Online CPUs as the kernel's list, for example `0-3,6`.
    online_text: String,
    /// Online CPUs by number.
    online: BTreeSet<u16>,
    looked_at: Option<Instant>,
    /// Interval of the check for online CPUs.
    look_every: Duration,
}

impl PowerTable {
    pub(crate) fn load(
        host: Arc<dyn PowerHost>,
        store: Arc<dyn StateStore>,
        retry_first: Duration,
    ) -> Result<Self, StateStoreError> {
        Ok(Self(Mutex::new(Inner {
            settings_writer: SettingsWriter::load(host, store)?,
            meter: EnergyMeter::default(),
            effect: PowerEffect::Off,
            reported: None,
            online_text: String::new(),
            online: BTreeSet::new(),
            looked_at: None,
            look_every: retry_first.saturating_mul(CPUS_LOOKED_AT_RARELY),
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn report_effect(
        &mut self,
        power: Option<&PowerConfig>,
        apply_result: &ApplyResult,
    ) -> Option<EventDraft> {
        let Some(power) = power else {
            self.effect = PowerEffect::Off;
            self.reported = None;
            return None;
        };
        let machine = self.settings_writer.host.settings();
        let settings = self.setting_statuses(power, &machine);
        self.effect = super::effect::overall_effect(&settings);
        let draft = events::plan_effect_event(power, self.effect, &settings, apply_result);
        let must_report = self.reported.as_ref().is_none_or(|reported| {
            (reported.kind, &reported.text, &reported.fields)
                != (draft.kind, &draft.text, &draft.fields)
        });
        self.reported = Some(draft.clone());
        must_report.then_some(draft)
    }

    /// Returns the CPUs that came online since the last call; `None` if no CPU came online or went
    /// offline, and at the first call.
    fn look_at_cpus(&mut self) -> Option<BTreeSet<u16>> {
        let text = self.settings_writer.host.online_cpus();
        if text == self.online_text {
            return None;
        }
        let is_first = self.online_text.is_empty();
        self.online_text = text;
        let online: BTreeSet<u16> =
            self.settings_writer.host.settings().online().into_iter().collect();
        let added = online.difference(&self.online).copied().collect();
        self.online = online;
        (!is_first).then_some(added)
    }
}
