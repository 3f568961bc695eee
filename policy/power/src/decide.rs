//! Determines the kernel settings that a power plan requires on a host.

use crate::{
    Cpu, FrequencyPolicy, HostPowerSettings, PowerSpec, SettingId, SettingKind, TurboFile,
    UnavailableReason,
};

/// Setting with the value that a plan requires.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequiredSetting {
    /// Setting that must have the value.
    pub id: SettingId,
    /// Required value, as written to the file.
    pub value: String,
}

/// Host or CPUs that a requirement applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The host as a whole.
    Host,
    /// Individual CPUs, in ascending order.
    Cpus(Vec<u16>),
}

/// Single requirement of a power plan, with the settings that fulfil it on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRequirement {
    /// Host or CPUs that the requirement applies to.
    pub scope: Scope,
    /// Kind of the setting, as shown to users.
    pub kind: SettingKind,
    /// Description of the requirement, for display.
    pub description: String,
    /// Settings that fulfil the requirement; empty if it cannot be fulfilled.
    pub settings: Vec<RequiredSetting>,
    /// Reason for which the requirement is not met, or not on all CPUs; `None` if it is met.
    pub unavailable: Option<UnavailableReason>,
}

impl PlanRequirement {
    fn achievable(
        scope: Scope,
        kind: SettingKind,
        required: String,
        settings: Vec<RequiredSetting>,
    ) -> Self {
        Self { scope, kind, description: required, settings, unavailable: None }
    }

    fn unavailable(
        scope: Scope,
        kind: SettingKind,
        required: String,
        reason: UnavailableReason,
    ) -> Self {
        Self { scope, kind, description: required, settings: Vec::new(), unavailable: Some(reason) }
    }
}

/// Returns all requirements of a plan, with the settings that fulfil them, in this order:
/// frequencies, turbo, idle states.
pub fn plan_requirements(spec: &PowerSpec, machine: &HostPowerSettings) -> Vec<PlanRequirement> {
    let mut targets = Vec::new();
    turbo(spec, machine, &mut targets);
    if machine.policies.is_empty() {
        for (kind, required) in frequency_requirements(spec, "") {
            targets.push(PlanRequirement::unavailable(
                Scope::Host,
                kind,
                required,
                UnavailableReason::NoDriver,
            ));
        }
    } else {
        for policy in &machine.policies {
            frequencies(spec, policy, &mut targets);
        }
        add_unavailable(spec, machine, &mut targets);
    }
    for cpu in machine.cpus.iter().filter(|cpu| cpu.online) {
        idle(spec, cpu, &mut targets);
    }
    targets
}

/// Returns the frequency requirements of a plan for a cpufreq driver: kind of setting and
/// description for display.
fn frequency_requirements(spec: &PowerSpec, driver: &str) -> Vec<(SettingKind, String)> {
    let mut requirements = Vec::new();
    let governors = spec.governors(driver);
    if !governors.is_empty() {
        requirements.push((SettingKind::Governor, governors.join(" or ")));
    }
    // A missing setting that only some drivers have is no shortcoming for a plan.
    if let Some(preference) = &spec.energy_preference {
        requirements.push((SettingKind::EnergyPreference, preference.clone()));
    }
    let (min, max) = spec.performance_percent_range();
    let min = min.map(|min| (SettingKind::PerformancePercentMin, format!("{min} %")));
    let max = max.map(|max| (SettingKind::PerformancePercentMax, format!("{max} %")));
    requirements.extend(min.into_iter().chain(max));
    requirements
}

fn add_unavailable(
    spec: &PowerSpec,
    machine: &HostPowerSettings,
    targets: &mut Vec<PlanRequirement>,
) {
    let is_served = |cpu: &u16| machine.policies.iter().any(|policy| policy.cpus.contains(cpu));
    let cpus: Vec<u16> = machine.online().into_iter().filter(|cpu| !is_served(cpu)).collect();
    if cpus.is_empty() {
        return;
    }
    for (kind, required) in frequency_requirements(spec, "") {
        targets.push(PlanRequirement::unavailable(
            Scope::Cpus(cpus.clone()),
            kind,
            required,
            UnavailableReason::NoFrequencyPolicy,
        ));
    }
}

fn turbo(spec: &PowerSpec, machine: &HostPowerSettings, targets: &mut Vec<PlanRequirement>) {
    let Some(enabled) = spec.turbo_required() else { return };
    let kind = SettingKind::Turbo;
    let required = if enabled { "on" } else { "off" }.to_owned();
    let flag = |enabled: bool| u8::from(enabled).to_string();
    if let Some(turbo) = machine.turbo {
        let value = flag(enabled == (turbo.file == TurboFile::Boost));
        let setting = RequiredSetting { id: SettingId::Turbo(turbo.file), value };
        targets.push(PlanRequirement::achievable(Scope::Host, kind, required, vec![setting]));
        return;
    }
    let with_boost = machine.policies.iter().filter(|policy| policy.boost.is_some());
    let new_targets = with_boost.map(|policy| {
        let setting = RequiredSetting { id: SettingId::Boost(policy.number), value: flag(enabled) };
        PlanRequirement::achievable(
            Scope::Cpus(policy.cpus.clone()),
            kind,
            required.clone(),
            vec![setting],
        )
    });
    let before = targets.len();
    targets.extend(new_targets);
    // A CPU without turbo meets the requirement that turbo is off.
    if targets.len() == before && (enabled || spec.turbo.is_some()) {
        targets.push(PlanRequirement::unavailable(
            Scope::Host,
            kind,
            required,
            UnavailableReason::NoTurbo,
        ));
    }
}

fn frequencies(spec: &PowerSpec, policy: &FrequencyPolicy, targets: &mut Vec<PlanRequirement>) {
    let scope = || Scope::Cpus(policy.cpus.clone());
    let governors = spec.governors(&policy.driver);
    let governor = governors.iter().find(|name| is_offered(&policy.governors, name));
    if let Some(first) = governors.first() {
        let kind = SettingKind::Governor;
        let target = match governor {
            Some(governor) => {
                let value = (*governor).to_owned();
                let setting = RequiredSetting { id: SettingId::Governor(policy.number), value };
                PlanRequirement::achievable(scope(), kind, (*governor).to_owned(), vec![setting])
            }
            None => {
                let reason = UnavailableReason::GovernorNotOffered {
                    driver: policy.driver.clone(),
                    required: governors.iter().map(|&governor| governor.to_owned()).collect(),
                    offered: policy.governors.clone(),
                };
                PlanRequirement::unavailable(scope(), kind, (*first).to_owned(), reason)
            }
        };
        targets.push(target);
    }
    let governor = governor.copied().or(policy.governor.as_deref());
    targets.extend(preference(spec, policy, governor));
    targets.extend(percents(spec, policy));
}

fn preference(
    spec: &PowerSpec,
    policy: &FrequencyPolicy,
    governor: Option<&str>,
) -> Option<PlanRequirement> {
    let required = spec.preference()?;
    let (kind, scope) = (SettingKind::EnergyPreference, Scope::Cpus(policy.cpus.clone()));
    let driver = policy.driver.clone();
    if policy.preference.is_none() {
        // Only some drivers support preferences; for a plan that does not name one, that is no
        // shortcoming.
        spec.energy_preference.as_ref()?;
        let reason = UnavailableReason::PreferencesUnsupported { driver };
        return Some(PlanRequirement::unavailable(scope, kind, required.to_owned(), reason));
    }
    let reason = if !is_offered(&policy.preferences, required) {
        Some(UnavailableReason::PreferenceNotOffered {
            driver,
            required: required.to_owned(),
            offered: policy.preferences.clone(),
        })
    } else if governor == Some("performance") && required != "performance" {
        Some(UnavailableReason::PreferenceForbiddenByGovernor { driver })
    } else {
        None
    };
    Some(match reason {
        Some(reason) => PlanRequirement::unavailable(scope, kind, required.to_owned(), reason),
        None => {
            let id = SettingId::Preference(policy.number);
            let setting = RequiredSetting { id, value: required.to_owned() };
            PlanRequirement::achievable(scope, kind, required.to_owned(), vec![setting])
        }
    })
}

fn percents(spec: &PowerSpec, policy: &FrequencyPolicy) -> Vec<PlanRequirement> {
    let (min, max) = spec.performance_percent_range();
    let target = |percent: u8, kind: SettingKind, id: SettingId| {
        let scope = Scope::Cpus(policy.cpus.clone());
        let offered = policy.khz_range.filter(|(least, most)| least <= most);
        let (Some((least, most)), true) = (offered, policy.khz_min.and(policy.khz_max).is_some())
        else {
            let reason = UnavailableReason::FrequencyRangeUnknown { driver: policy.driver.clone() };
            return PlanRequirement::unavailable(scope, kind, format!("{percent} %"), reason);
        };
        let khz = u64::from(most) * u64::from(percent.min(100)) / 100;
        let khz = u32::try_from(khz).unwrap_or(most).clamp(least, most);
        let setting = RequiredSetting { id, value: khz.to_string() };
        PlanRequirement::achievable(
            scope,
            kind,
            format!("{percent} %, {} MHz", khz / 1000),
            vec![setting],
        )
    };
    let number = policy.number;
    let min = min.map(|percent| {
        let id = SettingId::FrequencyMin(number);
        target(percent, SettingKind::PerformancePercentMin, id)
    });
    let max = max.map(|percent| {
        let id = SettingId::FrequencyMax(number);
        target(percent, SettingKind::PerformancePercentMax, id)
    });
    min.into_iter().chain(max).collect()
}

fn idle(spec: &PowerSpec, cpu: &Cpu, targets: &mut Vec<PlanRequirement>) {
    let (name, limit_us) = (spec.idle_state_max.as_deref(), spec.idle_latency_us_max);
    let required = match (name, limit_us) {
        (None, None) => return,
        (Some(name), None) => format!("{name} at most"),
        (None, Some(us)) => format!("{us} us at most"),
        (Some(name), Some(us)) => format!("{name} and {us} us at most"),
    };
    let (scope, kind) = (Scope::Cpus(vec![cpu.number]), SettingKind::IdleStates);
    let Some(shallowest) = cpu.idle_states.first() else {
        targets.push(PlanRequirement::unavailable(
            scope,
            kind,
            required,
            UnavailableReason::NoIdleStates,
        ));
        return;
    };
    let deepest = name.map(|name| cpu.idle_states.iter().rfind(|state| state.name == name));
    if let (Some(None), Some(name)) = (deepest, name) {
        let offered = cpu.idle_states.iter().map(|state| state.name.clone()).collect();
        let reason = UnavailableReason::IdleStateNotFound { required: name.to_owned(), offered };
        targets.push(PlanRequirement::unavailable(scope, kind, required, reason));
        return;
    }
    let number_max = deepest.flatten().map_or(u8::MAX, |state| state.number);
    let latency_max = limit_us.unwrap_or(u32::MAX);
    let is_forbidden = |state: &&crate::IdleState| {
        state.number != shallowest.number
            && (state.number > number_max || state.latency_us > latency_max)
    };
    let forbidden = cpu.idle_states.iter().filter(is_forbidden);
    let settings = forbidden.map(|state| RequiredSetting {
        id: SettingId::IdleStateDisable { cpu: cpu.number, state: state.number },
        value: "1".to_owned(),
    });
    let settings = settings.collect();
    let why_not =
        (shallowest.latency_us > latency_max).then(|| UnavailableReason::ExitLatencyAboveLimit {
            limit_us: latency_max,
            name: shallowest.name.clone(),
            latency_us: shallowest.latency_us,
        });
    targets.push(PlanRequirement {
        scope,
        kind,
        description: required,
        settings,
        unavailable: why_not,
    });
}

fn is_offered(offered: &[String], value: &str) -> bool {
    offered.iter().any(|candidate| candidate == value)
}
