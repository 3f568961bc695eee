//! Validation of scenarios of kind `host`.

use std::collections::BTreeSet;

use suimon_sim_kernel::InvalidKeys;

use crate::host::route::PREDEFINED_CONDITIONS;
use crate::host::spec::{
    By, CaseSpec, EnergySpec, Executor, Expect, HostScenario, MachineSpec, Measure, NicSpec,
    VmsSpec,
};

/// Longest duration of a stage in ns.
const STAGE_NS_MAX: u64 = 10_000_000_000;

impl HostScenario {
    /// Reports keys of the scenario with invalid values.
    pub(crate) fn check_keys(&self, invalid: &mut InvalidKeys) {
        invalid.within("settle_ms", self.settle_ms, 1, 3_600_000);
        invalid.within("measure_ms", self.measure_ms, 1, 3_600_000);
        invalid.within("machine", self.machine.len() as u64, 1, 64);
        invalid.within("vms", self.vms.len() as u64, 1, 256);
        invalid.within("case", self.case.len() as u64, 1, 256);
        for (number, machine) in (1..).zip(&self.machine) {
            machine.check(&format!("machine {number}"), &self.kinds(), invalid);
        }
        for (number, nic) in (1..).zip(&self.nic) {
            nic.check(&format!("nic {number}"), invalid);
        }
        let known_conditions: BTreeSet<&str> = self
            .case
            .iter()
            .flat_map(|case| &case.with)
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
            invalid.within(format!("{key}.vms.{kind}"), u64::from(*count), 0, 1024);
        }
        let vm_count = |vms: &VmsSpec| case.vms.get(&vms.name).copied().unwrap_or(vms.count);
        let count: u64 = self.vms.iter().map(|vms| u64::from(vm_count(vms))).sum();
        invalid.within(format!("{key}: VMs"), count, 1, 4096);
        for (from, to) in &case.talk {
            invalid.within(format!("{key}.talk"), u64::from(*from), 1, count);
            invalid.within(format!("{key}.talk"), u64::from(*to), 1, count);
            if from == to {
                invalid.add(format!("{key}.talk"), format!("VM {from} cannot send to itself"));
            }
        }
        if let Some(block) = case.block_bytes {
            invalid.within(format!("{key}.block_bytes"), block, 1, 1 << 30);
        }
        if let Some(vmq) = case.vmq {
            let max_processors = u64::from(vmq.max_processors);
            invalid.within(format!("{key}.vmq.max_processors"), max_processors, 1, 1024);
        } else if self.vms.iter().any(|vms| vm_count(vms) > 0 && vms.uses(Executor::Queue)) {
            invalid.add(format!("{key}.vmq"), "missing; stages of a queue require vmq settings");
        }
        if let Some(percent) = case.power.and_then(|power| power.performance_percent_min) {
            invalid.within(format!("{key}.power.performance_percent_min"), percent.into(), 0, 100);
        }
        let names: Vec<&str> = self.case.iter().map(|case_spec| case_spec.name.as_str()).collect();
        for figure in &case.figure {
            check_expect(&format!("{key}.figure"), &figure.expect, &kinds, &names, invalid);
        }
    }
}

fn check_expect(
    key: &str,
    expect: &Expect,
    kinds: &[&str],
    cases: &[&str],
    invalid: &mut InvalidKeys,
) {
    if expect.of != Measure::Module && !expect.what.is_empty() {
        known_only(&format!("{key}.what"), &expect.what, kinds, invalid);
    }
    if let Some(reference) = &expect.against {
        let is_begun = cases.iter().any(|case| case.starts_with(reference.as_str()));
        if expect.by == By::Best && is_begun {
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
        invalid.within(field_key("logical_cpus"), cpus, 1, 1024);
        invalid.within(
            field_key("threads_per_core"),
            self.threads_per_core.into(),
            1,
            cpus.clamp(1, 8),
        );
        invalid.within(field_key("numa_nodes"), self.numa_nodes.into(), 1, cpus.max(1));
        invalid.within(field_key("sibling_percent"), self.sibling_percent, 1, 100);
        invalid.within(field_key("contention_permille"), self.contention_permille, 0, 10_000);
        invalid.within(
            field_key("host_contention_permille"),
            self.host_contention_permille,
            0,
            10_000,
        );
        invalid.within(field_key("refill_us"), self.refill_us, 0, 100_000);
        for (kind, percent) in &self.takes_percent {
            known_only(&field_key("takes_percent"), kind, kinds, invalid);
            invalid.within(field_key(&format!("takes_percent.{kind}")), *percent, 1, 10_000);
        }
        if let Some(energy) = &self.energy {
            energy.check(&field_key("energy"), invalid);
        }
    }
}

impl EnergySpec {
    fn check(&self, key: &str, invalid: &mut InvalidKeys) {
        let field_key = |field: &str| format!("{key}.{field}");
        invalid.within(field_key("mhz"), self.mhz.len() as u64, 1, 64);
        invalid.within(field_key("turbo_mhz"), self.turbo_mhz.len() as u64, 1, 64);
        invalid.within(field_key("idle"), self.idle.len() as u64, 1, 16);
        for mhz in self.mhz.iter().chain(&self.turbo_mhz) {
            invalid.within(field_key("mhz"), *mhz, 1, 100_000);
        }
        if !self.mhz.is_sorted() || !self.millivolts.is_sorted() {
            invalid.add(field_key("mhz"), "clocks and voltages must be in ascending order");
        }
        self.millivolts
            .iter()
            .for_each(|mv| invalid.within(field_key("millivolts"), *mv, 1, 10_000));
        invalid.within(field_key("core_mw"), self.core_mw, 1, 1_000_000);
        invalid.within(field_key("rest_mw"), self.rest_mw, 0, 100_000_000);
        for (number, idle) in (1..).zip(&self.idle) {
            let key = |field: &str| field_key(&format!("idle {number}.{field}"));
            invalid.within(key("latency_us"), idle.latency_us, 0, 1_000_000);
            invalid.within(key("residency_us"), idle.residency_us, 0, 10_000_000);
            invalid.within(key("core_mw"), idle.core_mw, 0, self.core_mw);
        }
    }
}

impl NicSpec {
    fn check(&self, key: &str, invalid: &mut InvalidKeys) {
        let field_key = |field: &str| format!("{key}.{field}");
        invalid.within(field_key("gbit_s"), self.gbit_s, 1, 1000);
        invalid.within(field_key("mtu"), self.mtu, 576, 9216);
        invalid.within(field_key("fifo_frames"), self.fifo_frames as u64, 1, 65_536);
        invalid.within(field_key("cut_ns"), self.cut_ns, 0, STAGE_NS_MAX);
        invalid.within(field_key("frame_ns"), self.frame_ns, 0, STAGE_NS_MAX);
        invalid.within(field_key("byte_ps"), self.byte_ps, 0, 1_000_000_000);
        invalid.within(field_key("vfs"), self.vfs.into(), 0, 4096);
    }
}

impl VmsSpec {
    fn uses(&self, executor: Executor) -> bool {
        self.request.iter().flat_map(|request| &request.stage).any(|stage| stage.at == executor)
    }

    fn check(
        &self,
        key: &str,
        known_conditions: &BTreeSet<&str>,
        has_nic: bool,
        invalid: &mut InvalidKeys,
    ) {
        let field_key = |field: &str| format!("{key}.{field}");
        invalid.within(field_key("count"), self.count.into(), 0, 1024);
        invalid.within(field_key("vcpus"), self.vcpus.into(), 1, 1024);
        invalid.within(field_key("iov_weight"), self.iov_weight.into(), 0, 100);
        invalid.within(field_key("sessions"), self.sessions.into(), 0, 65_536);
        invalid.within(field_key("pace_us"), self.pace_us, 0, 60_000_000);
        invalid.within(field_key("broadcasts"), self.broadcasts, 0, 1_000_000);
        if self.reference.is_some_and(|reference| reference.is_nan() || reference <= 0.0) {
            invalid.add(field_key("reference"), "must be above 0");
        }
        if !has_nic && (self.uses(Executor::Nic) || self.uses(Executor::Wire)) {
            invalid.add(field_key("request"), "there are stages of a NIC, but no NIC");
        }
        for (number, request) in (1..).zip(&self.request) {
            let request_key = |field: &str| format!("{key}.request {number}.{field}");
            invalid.within(request_key("share"), request.share, 1, 1_000_000);
            invalid.within(request_key("bytes"), request.bytes, 1, 1 << 30);
            invalid.within(request_key("block_bytes"), request.block_bytes, 1, 1 << 30);
            invalid.within(request_key("stage"), request.stage.len() as u64, 1, 1024);
            for (number, stage) in (1..).zip(&request.stage) {
                let stage_key = |field: &str| request_key(&format!("stage {number}.{field}"));
                let durations = [stage.request_ns, stage.block_ns, stage.packet_ns, stage.frame_ns];
                let max_ns = durations.into_iter().chain([stage.ack_ns, stage.byte_ps]).max();
                invalid.within(stage_key("ns"), max_ns.unwrap_or_default(), 0, STAGE_NS_MAX);
                invalid.within(stage_key("memory_percent"), stage.memory_percent, 0, 100);
                for condition in stage.when.iter().chain(&stage.unless) {
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
