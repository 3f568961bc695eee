//! Path of a request: sequence of stages, each with the component that executes it.
//!
//! Equation: a stage takes `request_ns`, plus `block_ns` for each block written by the application,
//! `packet_ns` for each packet of the stack, `frame_ns` for each frame on the wire, `ack_ns` for
//! every second frame, and `byte_ps` for each byte. A frame contains the MTU less 40 bytes of
//! headers. A packet is a frame, or 64 KB if the NIC segments. Consecutive stages of the same
//! component are executed as one leg.

use std::collections::BTreeSet;

use crate::host::nic::{HEADER_BYTES, Transfer};
use crate::host::spec::{Executor, RequestSpec, StageSpec};

/// Largest packet of a stack in bytes (limit of IPv4's length field).
const PACKET_BYTES: u64 = 65_536;

/// Conditions of stages that the model derives from the decisions of policies. A case may define
/// further ones.
pub(crate) const PREDEFINED_CONDITIONS: [&str; 6] = [
    "checksum-by-nic",
    "segmentation-by-nic",
    "receive-checksum-by-nic",
    // The VM has a virtual function.
    "vf",
    // The VM communicates with a VM of this host.
    "local",
    // VMQ is enabled.
    "vmq",
];

/// Leg of a path: consecutive stages that one component executes without interruption.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) executor: Executor,
    /// Duration at the nominal clock without contention, in ns.
    pub(crate) duration_ns: u64,
    /// Share of the duration in thousandths that is spent waiting for memory and does not depend on
    /// the clock.
    pub(crate) memory_wait_permille: u64,
    pub(crate) transfer: Transfer,
    /// Share of `ns` of each module: number of the module, and ns.
    pub(crate) module_ns: Vec<(u16, u64)>,
}

/// Properties of a case and VM on which the path of a request depends.
pub(crate) struct PathConditions<'a> {
    pub(crate) conditions: &'a BTreeSet<String>,
    pub(crate) mtu: u64,
    pub(crate) block_bytes: Option<u64>,
    /// Duration of work in percent of the durations in the scenario.
    pub(crate) duration_percent: u64,
}

/// Names of modules by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModuleNames(pub(crate) Vec<String>);

impl ModuleNames {
    fn number(&mut self, name: &str) -> u16 {
        let index = self.0.iter().position(|known_name| known_name == name);
        let number = index.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        number as u16
    }
}

/// Returns the legs of a request's path. Adds the names of its modules to `modules`.
pub(crate) fn route(
    request: &RequestSpec,
    circumstances: &PathConditions<'_>,
    modules: &mut ModuleNames,
) -> Vec<Leg> {
    let PathConditions { conditions, mtu, block_bytes, duration_percent: takes_percent } =
        *circumstances;
    let bytes = request.bytes;
    let frames = bytes.div_ceil(mtu - HEADER_BYTES);
    let is_cut = conditions.contains("segmentation-by-nic");
    let packets = if is_cut { bytes.div_ceil(PACKET_BYTES) } else { frames };
    let blocks = bytes.div_ceil(block_bytes.unwrap_or(request.block_bytes).max(1));
    let transfer = Transfer { packets, frames, bytes };
    let mut legs: Vec<Leg> = Vec::new();
    let is_used = |stage: &&StageSpec| {
        stage.required_conditions.iter().all(|condition| conditions.contains(condition))
            && !stage.excluding_conditions.iter().any(|condition| conditions.contains(condition))
    };
    for stage in request.stage.iter().filter(is_used) {
        let counted = stage.request_ns
            + blocks * stage.block_ns
            + packets * stage.packet_ns
            + frames * stage.frame_ns
            + frames.div_ceil(2) * stage.ack_ns
            + bytes * stage.byte_ps / 1000;
        let is_work = !matches!(stage.executor, Executor::Nic | Executor::Wire | Executor::Wait);
        let ns = if is_work { counted * takes_percent / 100 } else { counted };
        let module = (modules.number(&stage.module), ns);
        match legs.last_mut() {
            Some(last) if last.executor == stage.executor && is_work => {
                let memory =
                    last.duration_ns * last.memory_wait_permille + ns * stage.memory_percent * 10;
                last.duration_ns += ns;
                last.memory_wait_permille = memory / last.duration_ns.max(1);
                last.module_ns.push(module);
            }
            _ => legs.push(Leg {
                executor: stage.executor,
                duration_ns: ns,
                memory_wait_permille: stage.memory_percent * 10,
                transfer,
                module_ns: vec![module],
            }),
        }
    }
    legs
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = r#"
name = "chunk"
share = 1
bytes = 65536
block_bytes = 8192
[[stage]]
module = "application"
at = "vm"
block_ns = 10
memory_percent = 100
[[stage]]
module = "sums"
at = "vm"
unless = ["checksum-by-nic"]
byte_ps = 1000
[[stage]]
module = "driver"
at = "host"
when = ["checksum-by-nic"]
packet_ns = 1000
frame_ns = 1
ack_ns = 100
"#;

    fn legs(conditions: &[&str]) -> Vec<Leg> {
        let conditions = conditions.iter().map(|condition| (*condition).to_owned()).collect();
        let circumstances = PathConditions {
            conditions: &conditions,
            mtu: 1500,
            block_bytes: None,
            duration_percent: 200,
        };
        let request = toml::from_str(REQUEST).unwrap();
        route(&request, &circumstances, &mut ModuleNames::default())
    }

    #[test]
    fn stages_count_their_units_and_stages_of_one_component_are_merged() {
        let software = legs(&[]);
        assert_eq!(software.len(), 1);
        assert_eq!(software[0].duration_ns, 2 * (8 * 10 + 65_536));
        assert_eq!(software[0].memory_wait_permille, 1000 * 80 / (80 + 65_536));
        assert_eq!(software[0].module_ns, [(0, 160), (1, 131_072)]);
        // 65 536 bytes are at most 45 frames of 1460 bytes.
        let checksum = legs(&["checksum-by-nic"]);
        assert_eq!((checksum.len(), checksum[1].duration_ns), (2, 2 * (45 * 1000 + 45 + 23 * 100)));
        let all_legs = legs(&["checksum-by-nic", "segmentation-by-nic"]);
        assert_eq!(all_legs[1].duration_ns, 2 * (1000 + 45 + 23 * 100));
        assert_eq!(all_legs[1].transfer, Transfer { packets: 1, frames: 45, bytes: 65_536 });
    }
}
