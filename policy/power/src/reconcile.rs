//! What is to be written, and what goes back to what it was.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Machine, SettingId, Wanted};

/// What is remembered of a setting before it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its value before.
    pub before: String,
    /// What was written, or was about to be.
    pub written: String,
    /// What was read after that, where a driver made another value of it; `None` if nothing
    /// was read yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

impl Record {
    /// Whether a value is what we made of the setting. Whoever died before it read again
    /// cannot know what the driver made of it.
    fn is_ours(&self, id: SettingId, value: &str) -> bool {
        let is_unread = self.found.is_none() && id.is_rounded() && value != self.before;
        self.written == value || self.found.as_deref() == Some(value) || is_unread
    }

    /// Whether a setting with this record is as `wanted`, now that it reads `now`: a driver
    /// takes the nearest frequency that it has.
    pub fn has_made(&self, id: SettingId, wanted: &str, now: &str) -> bool {
        self.written == wanted && self.is_ours(id, now)
    }
}

/// Records of all settings that are not as they were.
pub type Records = BTreeMap<SettingId, Record>;

/// Whose changes by somebody else are written over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assert {
    /// Nobody's.
    Nothing,
    /// All: the user has just set a plan.
    All,
    /// Those of CPUs that came online: the kernel has begun anew with them.
    Cpus(BTreeSet<u16>),
}

/// A setting that somebody else has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Which.
    pub id: SettingId,
    /// What it was before the plan.
    pub before: String,
    /// What the plan made it.
    pub written: String,
    /// What it is now.
    pub now: String,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// The records as they have to be kept before anything is written.
    pub records: Records,
    /// What is to be written, in this order.
    pub writes: Vec<Wanted>,
    /// Which of these give a setting its value before: its record is dropped once that has
    /// succeeded.
    pub restored: BTreeSet<SettingId>,
    /// Changed by somebody else, and left so. Without a plan for it, its record is dropped.
    pub foreign: Vec<Foreign>,
    /// Not to be had now, such as those of CPUs that are offline; their records stay.
    pub waiting: BTreeSet<SettingId>,
}

/// What has to be done so that all that is wanted is so, and all else that was changed is as
/// it was before.
pub fn reconcile(
    wanted: &[Wanted],
    machine: &Machine,
    records: &Records,
    assert: &Assert,
) -> Reconciliation {
    let wanted: BTreeMap<SettingId, &str> =
        wanted.iter().map(|of| (of.id, of.value.as_str())).collect();
    let ids: BTreeSet<SettingId> = wanted.keys().chain(records.keys()).copied().collect();
    let mut outcome = Reconciliation::default();
    for id in ids {
        let record = records.get(&id);
        match (machine.value(id), wanted.get(&id), record) {
            (None, _, Some(record)) => {
                outcome.records.insert(id, record.clone());
                outcome.waiting.insert(id);
            }
            (None, _, None) => {}
            (Some(now), Some(value), record) => {
                let over = writes_over(assert, machine, id);
                outcome.want((id, value), now, record, over);
            }
            (Some(now), None, Some(record)) => {
                let over = match writes_over(assert, machine, id) {
                    Over::Forgotten => Over::Forgotten,
                    Over::Left | Over::ComesBack => Over::Left,
                };
                outcome.restore(id, now, record, over);
            }
            (Some(_), None, None) => {}
        }
    }
    order(&mut outcome.writes, machine);
    outcome
}

/// What becomes of a change by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// It is left alone.
    Left,
    /// It is written over, and is what comes back.
    ComesBack,
    /// It is written over and forgotten: it is nobody's wish but what a driver begins with.
    Forgotten,
}

fn writes_over(assert: &Assert, machine: &Machine, id: SettingId) -> Over {
    let is_of_them = match assert {
        Assert::Nothing => false,
        Assert::All => return Over::ComesBack,
        Assert::Cpus(cpus) => match id {
            SettingId::Turbo(_) => false,
            SettingId::Idle { cpu, .. } => cpus.contains(&cpu),
            SettingId::Boost(policy)
            | SettingId::Governor(policy)
            | SettingId::Preference(policy)
            | SettingId::FrequencyMax(policy)
            | SettingId::FrequencyMin(policy) => machine
                .policy(policy)
                .is_some_and(|policy| policy.cpus.iter().any(|cpu| cpus.contains(cpu))),
        },
    };
    if is_of_them { Over::Forgotten } else { Over::Left }
}

impl Reconciliation {
    fn want(
        &mut self,
        (id, value): (SettingId, &str),
        now: String,
        record: Option<&Record>,
        over: Over,
    ) {
        let Some(record) = record else {
            if now != value {
                self.write(id, value, now);
            }
            return;
        };
        if now == value && now == record.before {
            // As it was and as it is to be: there is nothing to come back.
        } else if now == value || record.has_made(id, value, &now) {
            let found = Some(now);
            self.records.insert(id, Record { written: value.to_owned(), found, ..record.clone() });
        } else if record.is_ours(id, &now) || now == record.before || over == Over::Forgotten {
            // Another plan, a write that was not reached, or a CPU that begins anew.
            self.write(id, value, record.before.clone());
        } else if over == Over::ComesBack {
            self.write(id, value, now);
        } else {
            self.foreign.push(foreign(id, record, now));
            self.records.insert(id, record.clone());
        }
    }

    fn write(&mut self, id: SettingId, value: &str, before: String) {
        let written = value.to_owned();
        self.records.insert(id, Record { before, written: written.clone(), found: None });
        self.writes.push(Wanted { id, value: written });
    }

    fn restore(&mut self, id: SettingId, now: String, record: &Record, over: Over) {
        if now == record.before {
            return;
        }
        if record.is_ours(id, &now) || over == Over::Forgotten {
            self.records.insert(id, record.clone());
            self.writes.push(Wanted { id, value: record.before.clone() });
            self.restored.insert(id);
        } else {
            self.foreign.push(foreign(id, record, now));
        }
    }
}

fn foreign(id: SettingId, record: &Record, now: String) -> Foreign {
    Foreign { id, before: record.before.clone(), written: record.written.clone(), now }
}

/// Puts writes in an order in which the kernel takes them: turbo, governors, preferences,
/// frequencies, idle states; and of a policy's frequencies the maximum first, unless it is
/// lowered below the minimum.
fn order(writes: &mut [Wanted], machine: &Machine) {
    writes.sort();
    let khz = |value: &str| value.parse::<u32>().ok();
    let lowered: BTreeSet<u16> = writes
        .iter()
        .filter_map(|of| {
            let SettingId::FrequencyMax(policy) = of.id else { return None };
            let min_now = machine.policy(policy)?.khz_min?;
            (khz(&of.value)? < min_now).then_some(policy)
        })
        .collect();
    if lowered.is_empty() {
        return;
    }
    writes.sort_by_key(|of| match of.id {
        SettingId::FrequencyMin(policy) if lowered.contains(&policy) => {
            (SettingId::FrequencyMax(0), 0, policy)
        }
        SettingId::FrequencyMax(policy) => (SettingId::FrequencyMax(0), 1, policy),
        id => (id, 2, 0),
    });
}
