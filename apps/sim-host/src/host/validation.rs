//! Validation of scenarios of kind `host`.

use std::collections::BTreeSet;

use suimon_sim_kernel::InvalidKeys;

use crate::host::route::PREDEFINED_CONDITIONS;
use crate::host::spec::{
    CaseSpec, Comparison, EnergySpec, Executor, Expectation, HostScenario, MachineSpec, Measure,
    NicSpec, VmsSpec,
};

/// Longest duration of a stage in ns.
const STAGE_NS_MAX: u64 = 10_000_000_000;

impl HostScenario {
    /// Reports keys of the scenario with invalid values.
    pub(crate) fn check_keys(&self, invalid: &mut InvalidKeys) {
        invalid.check_range("settle_ms", self.settle_ms, 1, 3_600_000);
        invalid.check_range("measure_ms", self.measure_ms, 1, 3_600_000);
        invalid.check_range("machine", self.machine.len() as u64, 1, 64);
        invalid.check_range("vms", self.vms.len() as u64, 1, 256);
        invalid.check_range("case", self.case.len() as u64, 1, 256);
        for (number, machine) in (1..).zip(&self.machine) {
            machine.check(&format!("machine {number}"), &self.kinds(), invalid);
        }
        for (number, nic) in (1..).zip(&self.nic) {
            nic.check(&format!("nic {number}"), invalid);
        }
        let known_conditions: BTreeSet<&str> = self
            .case
            .iter()
            .flat_map(|case| &case.conditions)
            .map(String::as_str)
            .chain(PREDEFINED_CONDITIONS)
            .collect();
        for (number, vms) in (1..).zip(&self.vms) {
            vms.check(&format!("vms {number}"), &known_conditions, !self.nic.is_empty(), invalid);
        }
        for (number, case) in (1..).zip(&self.case) {
            self.check_case(&format!("case {number}"), case, invalid);
        }
    }

    fn kinds(&self) -> Vec<&str> {
        self.vms.iter().map(|vms| vms.name.as_str()).collect()
    }

    fn check_case(&self, key: &str, case: &CaseSpec, invalid: &mut InvalidKeys) {
        let machines: Vec<&str> =
            self.machine.iter().map(|machine| machine.name.as_str()).collect();
        let nics: Vec<&str> = self.nic.iter().map(|nic| nic.name.as_str()).collect();
        let kinds = self.kinds();
        for (field, name, known_names) in
            [("machine", &case.machine, machines), ("nic", &case.nic, nics)]
        {
            name.iter().for_each(|name| {
                known_only(&format!("{key}.{field}"), name, &known_names, invalid);
            });
        }
        for (kind, count) in &case.vms {
            known_only(&format!("{key}.vms"), kind, &kinds, invalid);
            invalid.check_range(format!("{key}.vms.{kind}"), u64::from(*count), 0, 1024);
        }
        let vm_count = |vms: &VmsSpec| case.vms.get(&vms.name).copied().unwrap_or(vms.count);
        let count: u64 = self.vms.iter().map(|vms| u64::from(vm_count(vms))).sum();
        invalid.check_range(format!("{key}: VMs"), count, 1, 4096);
        for (from, to) in &case.traffic_pairs {
            invalid.check_range(format!("{key}.talk"), u64::from(*from), 1, count);
            invalid.check_range(format!("{key}.talk"), u64::from(*to), 1, count);
            if from == to {
                invalid.add(format!("{key}.talk"), format!("VM {from} cannot send to itself"));
            }
        }
        if let Some(block) = case.block_bytes {
            invalid.check_range(format!("{key}.block_bytes"), block, 1, 1 << 30);
        }
        if let Some(vmq) = case.vmq {
            let max_processors = u64::from(vmq.max_workers);
            invalid.check_range(format!("{key}.vmq.max_processors"), max_processors, 1, 1024);
        } else if self.vms.iter().any(|vms| vm_count(vms) > 0 && vms.uses(Executor::Queue)) {
            invalid.add(format!("{key}.vmq"), "missing; stages of a queue require vmq settings");
        }
        if let Some(percent) = case.power.and_then(|power| power.performance_percent_min) {
            invalid.check_range(
                format!("{key}.power.performance_percent_min"),
                percent.into(),
                0,
                100,
            );
        }
        let names: Vec<&str> = self.case.iter().map(|case_spec| case_spec.name.as_str()).collect();
        for figure in &case.figure {
            check_expect(&format!("{key}.figure"), &figure.expectation, &kinds, &names, invalid);
        }
    }
}

fn check_expect(
    key: &str,
    expect: &Expectation,
    kinds: &[&str],
    cases: &[&str],
    invalid: &mut InvalidKeys,
) {
    if expect.measure != Measure::ModuleCpuPerRequest && !expect.measure_filter.is_empty() {
        known_only(&format!("{key}.what"), &expect.measure_filter, kinds, invalid);
    }
    if let Some(reference) = &expect.reference_case {
        let is_begun = cases.iter().any(|case| case.starts_with(reference.as_str()));
        if expect.comparison == Comparison::PercentFromBest && is_begun {
            return;
        }
        known_only(&format!("{key}.against"), reference, cases, invalid);
    }
    if expect.from > expect.to {
        invalid.add(format!("{key}.from"), format!("{} exceeds to, {}", expect.from, expect.to));
    }
}

impl MachineSpec {
    fn check(&self, key: &str, kinds: &[&str], invalid: &mut InvalidKeys) {
        let field_key = |field: &str| format!("{key}.{field}");
        let cpus = u64::from(self.logical_cpus);
        invalid.check_range(field_key("logical_cpus"), cpus, 1, 1024);
        invalid.check_range(
            field_key("threads_per_core"),
            self.threads_per_core.into(),
            1,
            cpus.clamp(1, 8),
        );
        invalid.check_range(field_key("numa_nodes"), self.numa_nodes.into(), 1, cpus.max(1));
        invalid.check_range(field_key("sibling_percent"), self.busy_sibling_speed_percent, 1, 100);
        invalid.check_range(field_key("contention_permille"), self.contention_permille, 0, 10_000);
        invalid.check_range(
            field_key("host_contention_permille"),
            self.host_contention_permille,
            0,
            10_000,
        );
        invalid.check_range(field_key("refill_us"), self.cache_refill_us, 0, 100_000);
        for (kind, percent) in &self.duration_percent {
            known_only(&field_key("takes_percent"), kind, kinds, invalid);
            invalid.check_range(field_key(&format!("takes_percent.{kind}")), *percent, 1, 10_000);
        }
        if let Some(energy) = &self.energy {
            energy.check(&field_key("energy"), invalid);
        }
    }
}

impl EnergySpec {
    fn check(&self, key: &str, invalid: &mut InvalidKeys) {
        let field_key = |field: &str| format!("{key}.{field}");
        invalid.check_range(field_key("mhz"), self.mhz.len() as u64, 1, 64);
        invalid.check_range(field_key("turbo_mhz"), self.turbo_mhz.len() as u64, 1, 64);
        invalid.check_range(field_key("idle"), self.idle.len() as u64, 1, 16);
        for mhz in self.mhz.iter().chain(&self.turbo_mhz) {
            invalid.check_range(field_key("mhz"), *mhz, 1, 100_000);
        }
        if !self.mhz.is_sorted() || !self.millivolts.is_sorted() {
            invalid.add(field_key("mhz"), "clocks and voltages must be in ascending order");
        }
        self.millivolts
            .iter()
            .for_each(|mv| invalid.check_range(field_key("millivolts"), *mv, 1, 10_000));
        invalid.check_range(field_key("core_mw"), self.core_mw, 1, 1_000_000);
        invalid.check_range(field_key("rest_mw"), self.non_core_mw, 0, 100_000_000);
        for (number, idle) in (1..).zip(&self.idle) {
            let key = |field: &str| field_key(&format!("idle {number}.{field}"));
            invalid.check_range(key("latency_us"), idle.latency_us, 0, 1_000_000);
            invalid.check_range(key("residency_us"), idle.residency_us, 0, 10_000_000);
            invalid.check_range(key("core_mw"), idle.core_mw, 0, self.core_mw);
        }
    }
}

impl NicSpec {
    fn check(&self, key: &str, invalid: &mut InvalidKeys) {
        let field_key = |field: &str| format!("{key}.{field}");
        invalid.check_range(field_key("gbit_s"), self.gbit_s, 1, 1000);
        invalid.check_range(field_key("mtu"), self.mtu, 576, 9216);
        invalid.check_range(field_key("fifo_frames"), self.fifo_frames as u64, 1, 65_536);
        invalid.check_range(field_key("cut_ns"), self.segmentation_start_ns, 0, STAGE_NS_MAX);
        invalid.check_range(field_key("frame_ns"), self.frame_ns, 0, STAGE_NS_MAX);
        invalid.check_range(field_key("byte_ps"), self.byte_ps, 0, 1_000_000_000);
        invalid.check_range(field_key("vfs"), self.vfs.into(), 0, 4096);
    }
}

impl VmsSpec {
    fn uses(&self, executor: Executor) -> bool {
        self.request
            .iter()
            .flat_map(|request| &request.stage)
            .any(|stage| stage.executor == executor)
    }

    fn check(
        &self,
        key: &str,
        known_conditions: &BTreeSet<&str>,
        has_nic: bool,
        invalid: &mut InvalidKeys,
    ) {
        let field_key = |field: &str| format!("{key}.{field}");
        invalid.check_range(field_key("count"), self.count.into(), 0, 1024);
        invalid.check_range(field_key("vcpus"), self.vcpus.into(), 1, 1024);
        invalid.check_range(field_key("iov_weight"), self.iov_weight.into(), 0, 100);
        invalid.check_range(field_key("sessions"), self.sessions.into(), 0, 65_536);
        invalid.check_range(field_key("pace_us"), self.request_interval_min_us, 0, 60_000_000);
        invalid.check_range(field_key("broadcasts"), self.broadcasts_per_s, 0, 1_000_000);
        if self.reference_rate.is_some_and(|reference| reference.is_nan() || reference <= 0.0) {
            invalid.add(field_key("reference"), "must be above 0");
        }
        if !has_nic && (self.uses(Executor::Nic) || self.uses(Executor::Wire)) {
            invalid.add(field_key("request"), "there are stages of a NIC, but no NIC");
        }
        for (number, request) in (1..).zip(&self.request) {
            let request_key = |field: &str| format!("{key}.request {number}.{field}");
            invalid.check_range(request_key("share"), request.share, 1, 1_000_000);
            invalid.check_range(request_key("bytes"), request.bytes, 1, 1 << 30);
            invalid.check_range(request_key("block_bytes"), request.block_bytes, 1, 1 << 30);
            invalid.check_range(request_key("stage"), request.stage.len() as u64, 1, 1024);
            for (number, stage) in (1..).zip(&request.stage) {
                let stage_key = |field: &str| request_key(&format!("stage {number}.{field}"));
                let durations = [stage.request_ns, stage.block_ns, stage.packet_ns, stage.frame_ns];
                let max_ns = durations.into_iter().chain([stage.ack_ns, stage.byte_ps]).max();
                invalid.check_range(stage_key("ns"), max_ns.unwrap_or_default(), 0, STAGE_NS_MAX);
                invalid.check_range(stage_key("memory_percent"), stage.memory_percent, 0, 100);
                for condition in stage.required_conditions.iter().chain(&stage.excluding_conditions)
                {
                    if !known_conditions.contains(condition.as_str()) {
                        let known_names: Vec<&str> = known_conditions.iter().copied().collect();
                        known_only(&stage_key("when"), condition, &known_names, invalid);
                    }
                }
            }
        }
    }
}

fn known_only(key: &str, name: &str, known_names: &[&str], invalid: &mut InvalidKeys) {
    if !known_names.contains(&name) {
        invalid.add(key, format!("there is no \"{name}\"; existing: {}", known_names.join(", ")));
    }
}
