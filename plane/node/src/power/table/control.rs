//! Use of power management by the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use suimon_contract::{HostConfig, Plan, PowerConfig};
use suimon_ports::StateStoreError;
use suimon_power::{OverwritePolicy, plan_requirements};

use crate::Edit;
use crate::control::Controller;
use crate::events::EventDraft;
use crate::power::events;
use crate::power::spec::{data_plane, power_spec};
use crate::shared::Shared;

impl Shared {
    /// Publishes the plan's poll duration to the data plane. VMQ reads the plan itself.
    pub(crate) fn publish_power(&self, config: &HostConfig) {
        self.plane.set_poll_budget(data_plane(config.power.as_ref()).poll_budget);
    }

    /// Adds a note to a change's plan about settings of the power plan that this host does not
    /// support.
    pub(crate) fn add_power_notes(&self, from: &HostConfig, to: &HostConfig, plan: &mut Plan) {
        let Some(power) = to.power.as_ref().filter(|_| from.power != to.power) else { return };
        let machine = self.power.lock().settings_writer.host.settings();
        let targets = plan_requirements(&power_spec(power), &machine);
        // Grouped by reason, because many CPUs and settings share one.
        let mut lacking: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for target in &targets {
            if let Some(reason) = &target.unavailable {
                lacking.entry(reason.to_string()).or_default().insert(target.kind.as_str());
            }
        }
        for step in plan.steps.iter_mut().filter(|step| step.resource == "power") {
            if !lacking.is_empty() {
                let notes: Vec<String> = lacking
                    .iter()
                    .map(|(reason, kinds)| {
                        let kinds: Vec<&str> = kinds.iter().copied().collect();
                        format!("{}, because {reason}", kinds.join(", "))
                    })
                    .collect();
                step.note = Some(format!("not available on this host: {}", notes.join("; ")));
            }
        }
    }

    /// Applies the power plan; restores previous settings if `power` is `None`. Returns the events.
    fn settle_power(
        &self,
        power: Option<&PowerConfig>,
        assert: &OverwritePolicy,
    ) -> Vec<EventDraft> {
        let mut inner = self.power.lock();
        let spec = power.map(power_spec);
        let apply_result = inner.settings_writer.apply(spec.as_ref(), assert);
        let mut drafts = events::settings_events(&apply_result);
        drafts.extend(inner.report_effect(power, &apply_result));
        drafts
    }
}

impl Controller {
    /// Applies or restores settings that the previous daemon changed, at the daemon's start.
    ///
    /// # Errors
    /// The state store cannot be read or written.
    pub(crate) fn start_power(&mut self, config: &HostConfig) -> Result<(), StateStoreError> {
        let boot = &self.shared.vms.dependencies.boot_id;
        {
            let mut inner = self.shared.power.lock();
            inner.settings_writer.delete_records_of_other_boots(boot)?;
            inner.look_at_cpus();
        }
        let drafts = self.shared.settle_power(config.power.as_ref(), &OverwritePolicy::Nothing);
        self.drafts.extend(drafts);
        Ok(())
    }

    /// Applies a changed power plan. A plan that the operator sets again overwrites external
    /// changes.
    pub(crate) fn change_power(&mut self, edit: &Edit, before: &HostConfig, after: &HostConfig) {
        if before.power != after.power || matches!(edit, Edit::Power(_)) {
            let drafts = self.shared.settle_power(after.power.as_ref(), &OverwritePolicy::All);
            self.drafts.extend(drafts);
        }
    }

    /// Applies the plan to CPUs that came online, if a check is due.
    pub(crate) fn watch_cpus(&mut self) {
        let desired = self.shared.desired();
        let power = desired.config.power.as_ref();
        let added = {
            let mut inner = self.shared.power.lock();
            let now = Instant::now();
            let interval = inner.look_every;
            let is_due = |last: Instant| now.duration_since(last) >= interval;
            let is_used = power.is_some() || !inner.settings_writer.records.is_empty();
            if !is_used || !inner.looked_at.is_none_or(is_due) {
                return;
            }
            inner.looked_at = Some(now);
            inner.look_at_cpus()
        };
        let Some(added) = added else { return };
        self.drafts.push(events::cpus_changed_event(&self.shared.power.lock().online, &added));
        let drafts = self.shared.settle_power(power, &OverwritePolicy::Cpus(added));
        self.drafts.extend(drafts);
    }

    /// Restores all settings because the daemon ends.
    pub(crate) fn restore_power_settings(&mut self) {
        let drafts = self.shared.settle_power(None, &OverwritePolicy::Nothing);
        self.shared.events.append(drafts);
    }
}
