//! Model of clocks, idle states and power.
//!
//! Equations
//! - The settings of a plan are those that `policy/power` decides and reconciles for a machine with
//!   the properties of [`EnergySpec`]. They are written in its order, turbo first, and read again.
//! - Governor `performance`: the highest permitted clock. `schedutil`: 1.25 · highest clock · u,
//!   rounded up to an available clock, every 10 ms; u is the CPU's busy time scaled by clock, with
//!   a half-life of 32 ms (Linux, Documentation/scheduler/schedutil.rst and
//!   kernel/sched/cpufreq_schedutil.c). `powersave`: the lowest clock.
//! - A socket has one clock, the highest requested by its busy CPUs. With turbo, a request for the
//!   nominal clock results in the turbo clock for the number of busy cores.
//! - A busy core takes P · f/f₀ · (V(f)/V₀)²: switching a capacitance f times per second. V is
//!   linear between the lowest, the nominal and the highest clock.
//! - An idle core is in the deepest idle state whose residency does not exceed its last idle time,
//!   and takes that state's latency to wake up.
//!
//! Parameters: clocks and turbo are those of the published CPU (Intel's specification of the Xeon
//! E5540). Voltages, idle states and power of a core are assumed or calibrated in each scenario.

use suimon_power::{
    Cpu, FrequencyPolicy, HostPowerSettings, IdleState, OverwritePolicy, PowerSpec, SettingId,
    SettingRecords, Turbo, TurboFile, plan_requirements, reconcile,
};
use suimon_quantity::Time;

use crate::host::spec::{EnergySpec, IdleSpec, PowerPlanSpec};
use crate::processors::CpuSharingModel;

/// Interval in ns at which utilisation is updated; clocks are selected every tenth time.
pub(crate) const TICK_NS: u64 = 1_000_000;
const TICKS_A_CLOCK: u64 = 10;
/// Decay of utilisation per ms: 2^(-1/32), in millionths.
const DECAY_PER_MS: u64 = 978_572;

#[derive(Clone, Debug, Default)]
struct Clock {
    requested_mhz: u64,
    works_since: Option<u64>,
    /// Busy time since the start of the tick, scaled by the clock: in ns at the nominal clock.
    worked: u64,
    /// Utilisation of the CPU in millionths.
    utilisation: u64,
}

#[derive(Clone, Debug, Default)]
struct Core {
    working: u16,
    idle_since: u64,
    idle_last: u64,
    idle_state: usize,
}

/// Clocks and energy of a machine.
pub(crate) struct PowerModel {
    spec: EnergySpec,
    sharing: CpuSharingModel,
    pub(crate) machine: HostPowerSettings,
    clocks: Vec<Clock>,
    cores: Vec<Core>,
    /// Energy used so far in mW · ns.
    energy: u128,
    now_mw: u64,
    taken_until: u64,
    ticks: u64,
}

impl PowerModel {
    /// Returns the machine as initialized by the kernel, with the power plan applied if there is
    /// one.
    pub(crate) fn new(
        spec: &EnergySpec,
        sharing: CpuSharingModel,
        plan: Option<PowerPlanSpec>,
    ) -> Self {
        let highest = spec.mhz.last().copied().unwrap_or(1);
        let clock = Clock { requested_mhz: highest, ..Clock::default() };
        let mut energy = Self {
            spec: spec.clone(),
            sharing,
            machine: offered(spec, sharing),
            clocks: vec![clock; sharing.logical_cpus.into()],
            cores: vec![Core::default(); sharing.cores().into()],
            energy: 0,
            now_mw: 0,
            taken_until: 0,
            ticks: 0,
        };
        if let Some(plan) = plan {
            let percent = plan.performance_percent_min;
            let spec = PowerSpec { performance_percent_min: percent, ..PowerSpec::new(plan.plan) };
            settle(&spec, &mut energy.machine);
        }
        for cpu in 0..sharing.logical_cpus {
            energy.request_clock(cpu);
        }
        energy.now_mw = energy.takes_mw();
        energy
    }

    /// Returns the total energy until now in mW · ns.
    pub(crate) fn total_energy_mw_ns(&mut self, now: Time) -> u128 {
        let now = now.as_ns();
        self.energy += u128::from(self.now_mw) * u128::from(now - self.taken_until);
        self.taken_until = now;
        self.energy
    }

    /// Returns the clock of a busy CPU in MHz.
    pub(crate) fn mhz(&self, cpu: u16) -> u64 {
        let node = self.sharing.numa_node(cpu);
        let is_of = |other: &u16| self.sharing.numa_node(*other) == node;
        let working = (0..self.sharing.logical_cpus).filter(is_of).filter(|other| {
            *other == cpu || self.clocks[usize::from(*other)].works_since.is_some()
        });
        let requested = working.map(|other| self.clocks[usize::from(other)].requested_mhz);
        let requested = requested.max().unwrap_or_default();
        let nominal = self.spec.mhz.last().copied().unwrap_or(1);
        if requested < nominal || !self.has_turbo() {
            return requested.min(nominal);
        }
        let is_on_node = |core: &u16| self.sharing.numa_node(*core) == node;
        let cores = (0..self.sharing.cores()).filter(is_on_node);
        let count = cores.filter(|core| self.cores[usize::from(*core)].working > 0).count();
        let index = count.clamp(1, self.spec.turbo_mhz.len().max(1)) - 1;
        self.spec.turbo_mhz.get(index).copied().unwrap_or(nominal)
    }

    /// Returns the nominal clock in MHz.
    pub(crate) fn nominal_mhz(&self) -> u64 {
        self.spec.mhz.last().copied().unwrap_or(1)
    }

    fn has_turbo(&self) -> bool {
        self.machine.turbo.is_some_and(|turbo| turbo.on)
    }

    /// Marks a CPU as busy. Returns the time in ns that its core takes to leave its idle state.
    pub(crate) fn mark_busy(&mut self, now: Time, cpu: u16) -> u64 {
        self.total_energy_mw_ns(now);
        let now = now.as_ns();
        self.clocks[usize::from(cpu)].works_since = Some(now);
        let core = &mut self.cores[usize::from(self.sharing.core(cpu))];
        core.working += 1;
        let mut latency_ns = 0;
        if core.working == 1 && now > core.idle_since {
            core.idle_last = now - core.idle_since;
            latency_ns =
                self.spec.idle.get(core.idle_state).map_or(0, |idle| idle.latency_us * 1000);
        }
        self.now_mw = self.takes_mw();
        latency_ns
    }

    /// Marks a CPU as idle.
    pub(crate) fn mark_idle(&mut self, now: Time, cpu: u16) {
        self.total_energy_mw_ns(now);
        self.count(now.as_ns(), cpu);
        self.clocks[usize::from(cpu)].works_since = None;
        let core = &mut self.cores[usize::from(self.sharing.core(cpu))];
        core.working -= 1;
        if core.working == 0 {
            core.idle_since = now.as_ns();
            let fits = |idle_spec: &IdleSpec| idle_spec.residency_us * 1000 <= core.idle_last;
            core.idle_state = self.spec.idle.iter().rposition(fits).unwrap_or_default();
        }
        self.now_mw = self.takes_mw();
    }

    /// Adds the busy time of a CPU since the last call to its utilisation.
    fn count(&mut self, now: u64, cpu: u16) {
        let mhz = self.mhz(cpu);
        let nominal = self.nominal_mhz();
        let clock = &mut self.clocks[usize::from(cpu)];
        if let Some(since) = &mut clock.works_since {
            clock.worked += (now - *since) * mhz / nominal;
            *since = now;
        }
    }

    /// Processes the end of a tick of 1 ms.
    pub(crate) fn tick(&mut self, now: Time) {
        self.total_energy_mw_ns(now);
        self.ticks += 1;
        for cpu in 0..self.sharing.logical_cpus {
            self.count(now.as_ns(), cpu);
            let clock = &mut self.clocks[usize::from(cpu)];
            let worked_ns = std::mem::take(&mut clock.worked).min(2 * TICK_NS);
            clock.utilisation = (clock.utilisation * DECAY_PER_MS
                + worked_ns * (1_000_000 - DECAY_PER_MS))
                / 1_000_000;
            if self.ticks % TICKS_A_CLOCK == 0 {
                self.request_clock(cpu);
            }
        }
        self.now_mw = self.takes_mw();
    }

    /// Sets the clock that the governor of a CPU requests.
    fn request_clock(&mut self, cpu: u16) {
        let highest = self.nominal_mhz();
        let Some(policy) = self.machine.policy(cpu) else { return };
        let mhz = |khz: Option<u32>, default| khz.map_or(default, |khz| u64::from(khz) / 1000);
        let (min_mhz, max_mhz) = (mhz(policy.khz_min, 0), mhz(policy.khz_max, highest));
        let clock = &mut self.clocks[usize::from(cpu)];
        let required_mhz = match policy.governor.as_deref() {
            Some("performance") => max_mhz,
            Some("powersave") => min_mhz,
            // Utilisation in millionths equals busy time in ns per ms (1 ms is a million ns).
            _ => highest * clock.utilisation * 5 / 4 / TICK_NS,
        };
        let required_mhz = required_mhz.clamp(min_mhz, max_mhz.max(min_mhz));
        let rounded =
            self.spec.mhz.iter().copied().find(|offered_mhz| *offered_mhz >= required_mhz);
        clock.requested_mhz = rounded.unwrap_or(highest);
    }

    fn takes_mw(&self) -> u64 {
        let core_mw = |core: u16| {
            let state = &self.cores[usize::from(core)];
            if state.working == 0 {
                return self
                    .spec
                    .idle
                    .get(state.idle_state)
                    .map_or(0, |idle_state| idle_state.core_mw);
            }
            let mut threads = (core..self.sharing.logical_cpus).step_by(self.cores.len());
            let is_working = |cpu: &u16| self.clocks[usize::from(*cpu)].works_since.is_some();
            let mhz = threads.find(is_working).map_or(0, |cpu| self.mhz(cpu));
            let (volts, nominal) = (self.millivolts(mhz), self.spec.millivolts[1]);
            self.spec.core_mw * mhz / self.nominal_mhz() * volts * volts / (nominal * nominal)
        };
        self.spec.non_core_mw + (0..self.sharing.cores()).map(core_mw).sum::<u64>()
    }

    fn millivolts(&self, mhz: u64) -> u64 {
        let [low, middle, high] = self.spec.millivolts;
        let (min_mhz, nominal) = (self.spec.mhz.first().copied().unwrap_or(1), self.nominal_mhz());
        let max_mhz = self.spec.turbo_mhz.iter().copied().max().unwrap_or(nominal);
        let interpolate = |mhz: u64, (x0, y0): (u64, u64), (x1, y1): (u64, u64)| {
            y0 + (y1.max(y0) - y0) * (mhz.clamp(x0, x1.max(x0)) - x0) / (x1.max(x0 + 1) - x0)
        };
        if mhz <= nominal {
            interpolate(mhz, (min_mhz, low), (nominal, middle))
        } else {
            interpolate(mhz, (nominal, middle), (max_mhz, high))
        }
    }
}

/// Returns the machine as initialized by the kernel: `acpi-cpufreq`, one policy per CPU, turbo
/// enabled.
fn offered(spec: &EnergySpec, sharing: CpuSharingModel) -> HostPowerSettings {
    let khz = |mhz: Option<&u64>| mhz.map_or(1, |mhz| *mhz as u32 * 1000);
    let (min, max) = (khz(spec.mhz.first()), khz(spec.mhz.last()));
    let idle = |(number, idle_spec): (u8, &IdleSpec)| IdleState {
        number,
        name: idle_spec.name.clone(),
        latency_us: idle_spec.latency_us as u32,
        disabled: false,
    };
    let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let cpu = |number| Cpu {
        number,
        online: true,
        idle_states: (0..).zip(&spec.idle).map(idle).collect(),
    };
    let policy = |number| FrequencyPolicy {
        number,
        cpus: vec![number],
        driver: "acpi-cpufreq".to_owned(),
        governors: strings(&["schedutil", "performance", "powersave"]),
        governor: Some("schedutil".to_owned()),
        khz_range: Some((min, max)),
        khz_min: Some(min),
        khz_max: Some(max),
        ..FrequencyPolicy::default()
    };
    HostPowerSettings {
        cpus: (0..sharing.logical_cpus).map(cpu).collect(),
        policies: (0..sharing.logical_cpus).map(policy).collect(),
        turbo: Some(Turbo { file: TurboFile::Boost, on: true }),
    }
}

/// Applies a power plan to a machine as `plane/node` does: first turbo alone, since it determines
/// the available settings, then the rest, in at most three iterations.
fn settle(spec: &PowerSpec, machine: &mut HostPowerSettings) {
    let mut records = SettingRecords::new();
    for _ in 0..3 {
        let required: Vec<_> = plan_requirements(spec, machine)
            .into_iter()
            .flat_map(|target| target.settings)
            .collect();
        let todo = reconcile(&required, machine, &records, &OverwritePolicy::All);
        let is_turbo = |id: SettingId| matches!(id, SettingId::Turbo(_) | SettingId::Boost(_));
        let has_turbo = todo.writes.iter().any(|write| is_turbo(write.id));
        for setting in todo.writes.iter().filter(|write| !has_turbo || is_turbo(write.id)) {
            write(machine, setting.id, &setting.value);
            if let Some(record) = todo.records.get(&setting.id) {
                records.insert(setting.id, record.clone());
            }
        }
    }
}

fn write(machine: &mut HostPowerSettings, id: SettingId, value: &str) {
    if let SettingId::Turbo(file) = id {
        machine.turbo = Some(Turbo { file, on: (value == "1") == (file == TurboFile::Boost) });
        return;
    }
    // Power plans use no other settings that the machine has.
    let (SettingId::Governor(number)
    | SettingId::FrequencyMin(number)
    | SettingId::FrequencyMax(number)) = id
    else {
        return;
    };
    let mut policies = machine.policies.iter_mut();
    let Some(policy) = policies.find(|policy| policy.number == number) else { return };
    match id {
        SettingId::FrequencyMin(_) => policy.khz_min = value.parse().ok(),
        SettingId::FrequencyMax(_) => policy.khz_max = value.parse().ok(),
        _ => policy.governor = Some(value.to_owned()),
    }
}
