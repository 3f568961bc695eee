//! Case with resolved names, and with the results of policies that decide once per case.

use std::collections::BTreeSet;

use crate::host::offload::offloads_by_nic;
use crate::host::route::{Leg, ModuleNames, PathConditions, route};
use crate::host::spec::{CaseSpec, HostScenario, MachineSpec, NicSpec, VmsSpec};
use crate::host::vf_assignment::assign_vfs;

/// VM of a case with its paths.
#[derive(Clone, Debug)]
pub(crate) struct Vm<'s> {
    pub(crate) spec: &'s VmsSpec,
    /// Virtual function of the VM, if one is assigned.
    pub(crate) vf: Option<u16>,
    /// Numbers of the VMs that its frames are sent to, in turn.
    pub(crate) peers: Vec<u32>,
    pub(crate) sessions: u32,
    /// Legs of the path of each kind of request.
    pub(crate) paths: Vec<Vec<Leg>>,
}

/// Case to be run, with resolved names.
pub(crate) struct ResolvedCase<'s> {
    pub(crate) scenario: &'s HostScenario,
    pub(crate) case: &'s CaseSpec,
    pub(crate) machine: &'s MachineSpec,
    pub(crate) nic: Option<&'s NicSpec>,
    pub(crate) vms: Vec<Vm<'s>>,
    pub(crate) modules: ModuleNames,
}

/// MTU in bytes of VMs without a NIC in their path.
const MTU: u64 = 1500;

impl<'s> ResolvedCase<'s> {
    /// Returns the case. [`HostScenario::check`] has rejected unknown names.
    pub(crate) fn new(scenario: &'s HostScenario, case: &'s CaseSpec) -> Self {
        let is_named = |name: &str, expected: &Option<String>| {
            expected.as_ref().is_none_or(|expected| expected == name)
        };
        let machine =
            scenario.machine.iter().find(|machine| is_named(&machine.name, &case.machine));
        let machine = machine.unwrap_or(&scenario.machine[0]);
        let nic = scenario.nic.iter().find(|nic| is_named(&nic.name, &case.nic));
        let of_kind = |spec: &'s VmsSpec| {
            let count = case.vms.get(&spec.name).copied().unwrap_or(spec.count);
            std::iter::repeat_n(spec, count as usize)
        };
        let specs: Vec<&VmsSpec> = scenario.vms.iter().flat_map(of_kind).collect();
        let weights: Vec<u8> = specs.iter().map(|spec| spec.iov_weight).collect();
        let paths = assign_vfs(&weights, nic.map_or(0, |nic| nic.vfs));
        let mut modules = ModuleNames::default();
        let mut vms = Vec::new();
        for ((number, spec), vf) in (1..).zip(specs).zip(paths) {
            let talks = case.traffic_pairs.iter().filter(|(from, _)| *from == number);
            let peers: Vec<u32> = talks.map(|(_, to)| to - 1).collect();
            let is_heard = case.traffic_pairs.is_empty() || !peers.is_empty();
            let mut conditions: BTreeSet<String> = case.conditions.iter().cloned().collect();
            let nic_tasks = nic.map(|nic| offloads_by_nic(nic, &case.offload));
            let flags = [
                ("checksum-by-nic", nic_tasks.is_some_and(|nic_tasks| nic_tasks.checksum)),
                ("segmentation-by-nic", nic_tasks.is_some_and(|nic_tasks| nic_tasks.segmentation)),
                (
                    "receive-checksum-by-nic",
                    nic_tasks.is_some_and(|nic_tasks| nic_tasks.receive_checksum),
                ),
                ("vf", vf.is_some()),
                ("local", !peers.is_empty()),
                ("vmq", case.vmq.is_some_and(|vmq| vmq.enabled)),
            ];
            conditions.extend(
                flags
                    .iter()
                    .filter(|(_, is_set)| *is_set)
                    .map(|(condition, _)| (*condition).to_owned()),
            );
            let circumstances = PathConditions {
                conditions: &conditions,
                mtu: nic.map_or(MTU, |nic| nic.mtu),
                block_bytes: case.block_bytes,
                duration_percent: machine.duration_percent.get(&spec.name).copied().unwrap_or(100),
            };
            let paths =
                spec.request.iter().map(|request| route(request, &circumstances, &mut modules));
            let paths = paths.collect();
            let sends_requests = is_heard && !spec.request.is_empty();
            let sessions = if sends_requests { spec.sessions } else { 0 };
            vms.push(Vm { spec, vf, peers, sessions, paths });
        }
        Self { scenario, case, machine, nic, vms, modules }
    }
}
