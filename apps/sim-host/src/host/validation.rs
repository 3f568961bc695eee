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
        let said: BTreeSet<&str> = self
            .case
            .iter()
            .flat_map(|of| &of.with)
            .map(String::as_str)
            .chain(PREDEFINED_CONDITIONS)
            .collect();
        for (number, vms) in (1..).zip(&self.vms) {
            vms.check(&format!("vms {number}"), &said, !self.nic.is_empty(), invalid);
        }
        for (number, case) in (1..).zip(&self.case) {
            self.check_case(&format!("case {number}"), case, invalid);
        }
    }

    fn kinds(&self) -> Vec<&str> {
        self.vms.iter().map(|of| of.name.as_str()).collect()
    }

    fn check_case(&self, key: &str, case: &CaseSpec, invalid: &mut InvalidKeys) {
        let machines: Vec<&str> = self.machine.iter().map(|of| of.name.as_str()).collect();
        let nics: Vec<&str> = self.nic.iter().map(|of| of.name.as_str()).collect();
        let kinds = self.kinds();
        for (field, name, known) in [("machine", &case.machine, machines), ("nic", &case.nic, nics)]
        {
            name.iter()
                .for_each(|name| known_only(&format!("{key}.{field}"), name, &known, invalid));
        }
        for (kind, count) in &case.vms {
            known_only(&format!("{key}.vms"), kind, &kinds, invalid);
            invalid.within(format!("{key}.vms.{kind}"), u64::from(*count), 0, 1024);
        }
        let of = |vms: &VmsSpec| case.vms.get(&vms.name).copied().unwrap_or(vms.count);
        let count: u64 = self.vms.iter().map(|vms| u64::from(of(vms))).sum();
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
            let most = u64::from(vmq.max_processors);
            invalid.within(format!("{key}.vmq.max_processors"), most, 1, 1024);
        } else if self.vms.iter().any(|vms| of(vms) > 0 && vms.uses(Executor::Queue)) {
            invalid.add(format!("{key}.vmq"), "missing; stages of a queue require vmq settings");
        }
        if let Some(percent) = case.power.and_then(|of| of.performance_percent_min) {
            invalid.within(format!("{key}.power.performance_percent_min"), percent.into(), 0, 100);
        }
        let names: Vec<&str> = self.case.iter().map(|of| of.name.as_str()).collect();
        for figure in &case.figure {
            check_expect(&format!("{key}.figure"), &figure.expect, &kinds, &names, invalid);
        }
    }
}

fn check_expect(key: &str, of: &Expect, kinds: &[&str], cases: &[&str], invalid: &mut InvalidKeys) {
    if of.of != Measure::Module && !of.what.is_empty() {
        known_only(&format!("{key}.what"), &of.what, kinds, invalid);
    }
    if let Some(against) = &of.against {
        let is_begun = cases.iter().any(|case| case.starts_with(against.as_str()));
        if of.by == By::Best && is_begun {
            return;
        }
        known_only(&format!("{key}.against"), against, cases, invalid);
    }
    if of.from > of.to {
        invalid.add(format!("{key}.from"), format!("{} exceeds to, {}", of.from, of.to));
    }
}

impl MachineSpec {
    fn check(&self, key: &str, kinds: &[&str], invalid: &mut InvalidKeys) {
        let of = |field: &str| format!("{key}.{field}");
        let cpus = u64::from(self.logical_cpus);
        invalid.within(of("logical_cpus"), cpus, 1, 1024);
        invalid.within(of("threads_per_core"), self.threads_per_core.into(), 1, cpus.clamp(1, 8));
        invalid.within(of("numa_nodes"), self.numa_nodes.into(), 1, cpus.max(1));
        invalid.within(of("sibling_percent"), self.sibling_percent, 1, 100);
        invalid.within(of("contention_permille"), self.contention_permille, 0, 10_000);
        invalid.within(of("host_contention_permille"), self.host_contention_permille, 0, 10_000);
        invalid.within(of("refill_us"), self.refill_us, 0, 100_000);
        for (kind, percent) in &self.takes_percent {
            known_only(&of("takes_percent"), kind, kinds, invalid);
            invalid.within(of(&format!("takes_percent.{kind}")), *percent, 1, 10_000);
        }
        if let Some(energy) = &self.energy {
            energy.check(&of("energy"), invalid);
        }
    }
}

impl EnergySpec {
    fn check(&self, key: &str, invalid: &mut InvalidKeys) {
        let of = |field: &str| format!("{key}.{field}");
        invalid.within(of("mhz"), self.mhz.len() as u64, 1, 64);
        invalid.within(of("turbo_mhz"), self.turbo_mhz.len() as u64, 1, 64);
        invalid.within(of("idle"), self.idle.len() as u64, 1, 16);
        for mhz in self.mhz.iter().chain(&self.turbo_mhz) {
            invalid.within(of("mhz"), *mhz, 1, 100_000);
        }
        if !self.mhz.is_sorted() || !self.millivolts.is_sorted() {
            invalid.add(of("mhz"), "clocks and voltages must be in ascending order");
        }
        self.millivolts.iter().for_each(|mv| invalid.within(of("millivolts"), *mv, 1, 10_000));
        invalid.within(of("core_mw"), self.core_mw, 1, 1_000_000);
        invalid.within(of("rest_mw"), self.rest_mw, 0, 100_000_000);
        for (number, idle) in (1..).zip(&self.idle) {
            let key = |field: &str| of(&format!("idle {number}.{field}"));
            invalid.within(key("latency_us"), idle.latency_us, 0, 1_000_000);
            invalid.within(key("residency_us"), idle.residency_us, 0, 10_000_000);
            invalid.within(key("core_mw"), idle.core_mw, 0, self.core_mw);
        }
    }
}

impl NicSpec {
    fn check(&self, key: &str, invalid: &mut InvalidKeys) {
        let of = |field: &str| format!("{key}.{field}");
        invalid.within(of("gbit_s"), self.gbit_s, 1, 1000);
        invalid.within(of("mtu"), self.mtu, 576, 9216);
        invalid.within(of("fifo_frames"), self.fifo_frames as u64, 1, 65_536);
        invalid.within(of("cut_ns"), self.cut_ns, 0, STAGE_NS_MAX);
        invalid.within(of("frame_ns"), self.frame_ns, 0, STAGE_NS_MAX);
        invalid.within(of("byte_ps"), self.byte_ps, 0, 1_000_000_000);
        invalid.within(of("vfs"), self.vfs.into(), 0, 4096);
    }
}

impl VmsSpec {
    fn uses(&self, place: Executor) -> bool {
        self.request.iter().flat_map(|of| &of.stage).any(|stage| stage.at == place)
    }

    fn check(&self, key: &str, said: &BTreeSet<&str>, has_nic: bool, invalid: &mut InvalidKeys) {
        let of = |field: &str| format!("{key}.{field}");
        invalid.within(of("count"), self.count.into(), 0, 1024);
        invalid.within(of("vcpus"), self.vcpus.into(), 1, 1024);
        invalid.within(of("iov_weight"), self.iov_weight.into(), 0, 100);
        invalid.within(of("sessions"), self.sessions.into(), 0, 65_536);
        invalid.within(of("pace_us"), self.pace_us, 0, 60_000_000);
        invalid.within(of("broadcasts"), self.broadcasts, 0, 1_000_000);
        if self.reference.is_some_and(|reference| reference.is_nan() || reference <= 0.0) {
            invalid.add(of("reference"), "must be above 0");
        }
        if !has_nic && (self.uses(Executor::Nic) || self.uses(Executor::Wire)) {
            invalid.add(of("request"), "there are stages of a NIC, but no NIC");
        }
        for (number, request) in (1..).zip(&self.request) {
            let of = |field: &str| format!("{key}.request {number}.{field}");
            invalid.within(of("share"), request.share, 1, 1_000_000);
            invalid.within(of("bytes"), request.bytes, 1, 1 << 30);
            invalid.within(of("block_bytes"), request.block_bytes, 1, 1 << 30);
            invalid.within(of("stage"), request.stage.len() as u64, 1, 1024);
            for (number, stage) in (1..).zip(&request.stage) {
                let of = |field: &str| of(&format!("stage {number}.{field}"));
                let most = [stage.request_ns, stage.block_ns, stage.packet_ns, stage.frame_ns];
                let most = most.into_iter().chain([stage.ack_ns, stage.byte_ps]).max();
                invalid.within(of("ns"), most.unwrap_or_default(), 0, STAGE_NS_MAX);
                invalid.within(of("memory_percent"), stage.memory_percent, 0, 100);
                for word in stage.when.iter().chain(&stage.unless) {
                    if !said.contains(word.as_str()) {
                        let known: Vec<&str> = said.iter().copied().collect();
                        known_only(&of("when"), word, &known, invalid);
                    }
                }
            }
        }
    }
}

fn known_only(key: &str, name: &str, known: &[&str], invalid: &mut InvalidKeys) {
    if !known.contains(&name) {
        invalid.add(key, format!("there is no \"{name}\"; existing: {}", known.join(", ")));
    }
}
