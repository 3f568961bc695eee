//! Tests with simulated devices that accept all, some or no rules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rustix::io::Errno;
use suimon_frame::{MacAddr, VlanId};
use suimon_ports::UplinkSpec;
use suimon_quantity::PortId;

use super::*;
use crate::NetDevices;
use crate::testing::{Notices, TestCable, TestQueueHost, uplink_spec};

/// State of a simulated device, which outlives its steering.
#[derive(Clone, Default)]
struct Device(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    rules: BTreeMap<u32, FlowRule>,
    spread: Vec<u16>,
    capacity: usize,
    refuses: Option<FlowError>,
    refuses_vlans: bool,
    refuses_to_spread: bool,
    refuses_to_remove: bool,
    calls: usize,
}

impl Device {
    fn with_room(space: usize) -> Self {
        let device = Self::default();
        device.change(|inner| inner.capacity = space);
        device
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// Returns queue and VLAN of each rule, by location.
    fn rules(&self) -> Vec<(u16, Option<u16>)> {
        let brief = |rule: &FlowRule| (rule.queue, rule.vlan.map(VlanId::get));
        self.change(|inner| inner.rules.values().map(brief).collect())
    }

    fn spread(&self) -> Vec<u16> {
        self.change(|inner| inner.spread.clone())
    }

    fn calls(&self) -> usize {
        self.change(|inner| inner.calls)
    }
}

impl FlowTable for Device {
    fn rules(&self) -> Result<Vec<(u32, FlowRule)>, FlowError> {
        self.change(|inner| {
            Ok(inner.rules.iter().map(|(location, rule)| (*location, *rule)).collect())
        })
    }

    fn insert(&mut self, rule: &FlowRule) -> Result<u32, FlowError> {
        self.change(|inner| {
            inner.calls += 1;
            if let Some(error) = inner.refuses {
                return Err(error);
            }
            if rule.vlan.is_some() && inner.refuses_vlans {
                return Err(FlowError::UnsupportedForm(Errno::INVAL));
            }
            let free =
                (0..inner.capacity as u32).find(|location| !inner.rules.contains_key(location));
            let location = free.ok_or(FlowError::Full)?;
            inner.rules.insert(location, *rule);
            Ok(location)
        })
    }

    fn remove(&mut self, location: u32) -> Result<(), FlowError> {
        self.change(|inner| {
            inner.calls += 1;
            if inner.refuses_to_remove {
                return Err(FlowError::Host(Errno::IO));
            }
            inner.rules.remove(&location).map(drop).ok_or(FlowError::Host(Errno::NOENT))
        })
    }

    fn distribute_unmatched(&mut self, queues: &[u16]) -> Result<(), FlowError> {
        self.change(|inner| {
            inner.calls += 1;
            if inner.refuses_to_spread {
                return Err(FlowError::Unsupported(Errno::OPNOTSUPP));
            }
            inner.spread = queues.to_vec();
            Ok(())
        })
    }
}

fn rule(nic: u32, vlan: Option<u16>, queue: u16) -> SteeringRule {
    let mac = MacAddr::new([2, 0, 0, 0, 0, nic as u8]);
    SteeringRule { port: PortId(nic), mac, vlan: vlan.and_then(VlanId::new), queue }
}

#[test]
fn rules_follow_the_specification_and_are_removed_with_the_uplink() {
    let device = Device::with_room(8);
    let mut steering = Steering::new(device.clone(), 4);
    let (web, db) = (rule(1, Some(10), 1), rule(2, None, 2));
    steering.set_rules(&[web, db]);
    assert_eq!(device.rules(), [(1, Some(10)), (2, None)]);
    assert_eq!(device.spread(), [0, 3], "other frames are not distributed over queues with rules");
    let state = SteeringState { rules: vec![web, db], is_exclusive: true, refusal: None };
    assert_eq!(steering.state(), state);
    let calls = device.calls();
    steering.set_rules(&[web, db]);
    assert_eq!(device.calls(), calls, "the device is not called again");
    // Another VLAN, another address, one NIC less and one more.
    let moved = rule(1, Some(11), 1);
    steering.set_rules(&[moved, db]);
    assert_eq!(device.rules(), [(1, Some(11)), (2, None)]);
    let readdressed = SteeringRule { mac: MacAddr::new([2, 0, 0, 0, 9, 9]), ..moved };
    steering.set_rules(&[readdressed, rule(3, None, 3)]);
    assert_eq!(steering.state().rules, [readdressed, rule(3, None, 3)]);
    assert_eq!((device.rules().len(), device.spread()), (2, vec![0, 2]));
    steering.set_rules(&[]);
    assert_eq!((device.rules(), device.spread()), (vec![], vec![]));
    assert_eq!(steering.state(), SteeringState::default());
    steering.set_rules(&[web]);
    drop(steering);
    assert_eq!((device.rules(), device.spread()), (vec![], vec![]));
}

#[test]
fn rules_of_a_killed_process_are_removed() {
    let device = Device::with_room(8);
    let mut killed = Steering::new(device.clone(), 4);
    killed.set_rules(&[rule(1, None, 1), rule(2, None, 3)]);
    std::mem::forget(killed);
    assert_eq!((device.rules().len(), device.spread().len()), (2, 2));
    let steering = Steering::new(device.clone(), 4);
    assert_eq!((device.rules(), device.spread()), (vec![], vec![]));
    assert_eq!(steering.state(), SteeringState::default());
}

#[test]
fn a_device_without_rules_is_tried_once_and_its_error_is_reported() {
    let device = Device::with_room(8);
    device.change(|inner| inner.refuses = Some(FlowError::Unsupported(Errno::OPNOTSUPP)));
    let mut steering = Steering::new(device.clone(), 4);
    steering.set_rules(&[rule(1, None, 1), rule(2, None, 2), rule(3, None, 3)]);
    assert_eq!((device.calls(), device.rules()), (1, vec![]));
    let state = steering.state();
    assert!(state.rules.is_empty() && !state.is_exclusive);
    let expected = "does not support flow rules by destination address (Operation not supported";
    assert!(state.refusal.unwrap().contains(expected));
    // The device's firmware may have changed.
    device.change(|inner| inner.refuses = None);
    steering.set_rules(&[rule(1, None, 1)]);
    assert_eq!(steering.state().rules, [rule(1, None, 1)]);
    assert_eq!(steering.state().refusal, None);
}

#[test]
fn a_full_table_leaves_the_others_without_a_queue() {
    let device = Device::with_room(1);
    let mut steering = Steering::new(device.clone(), 4);
    steering.set_rules(&[rule(1, None, 1), rule(2, None, 2)]);
    let state = steering.state();
    assert_eq!(state.rules, [rule(1, None, 1)]);
    assert!(state.refusal.unwrap().contains("is full"));
    assert_eq!(device.spread(), [0, 2, 3], "a queue whose rule was rejected receives other frames");
}

#[test]
fn a_device_that_ignores_vlans_steers_by_address() {
    let device = Device::with_room(8);
    device.change(|inner| inner.refuses_vlans = true);
    let mut steering = Steering::new(device.clone(), 4);
    steering.set_rules(&[rule(1, Some(10), 1)]);
    assert_eq!(device.rules(), [(1, None)]);
    assert_eq!(steering.state().rules, [rule(1, None, 1)]);
    assert_eq!(steering.state().refusal, None);
    // The same address in another VLAN belongs to another NIC.
    let twin = SteeringRule { port: PortId(2), queue: 2, ..rule(1, Some(20), 2) };
    steering.set_rules(&[rule(1, Some(10), 1), twin]);
    assert_eq!(device.rules(), [(1, None)]);
    assert!(steering.state().refusal.unwrap().contains("ignore VLANs"));
}

#[test]
fn missing_queues_and_failures_to_undo_are_tolerated() {
    let device = Device::with_room(8);
    let mut steering = Steering::new(device.clone(), 2);
    device.change(|inner| inner.refuses_to_spread = true);
    steering.set_rules(&[rule(1, None, 1), rule(2, None, 2)]);
    assert_eq!(device.rules(), [(1, None)], "the device has two queues");
    assert!(!steering.state().is_exclusive);
    device.change(|inner| inner.refuses_to_remove = true);
    steering.set_rules(&[]);
    assert_eq!(steering.state().rules.len(), 1, "the rule still exists and is reported");
    device.change(|inner| inner.refuses_to_remove = false);
    drop(steering);
    assert_eq!(device.rules(), []);
}

/// The error of the kernel, for a device whose driver supports no rules.
#[test]
fn a_veth_refuses_and_carries_on() {
    let cable = TestCable::with_queues("numtxqueues 3 numrxqueues 3", "");
    let spec = UplinkSpec {
        queue_pairs: 3,
        ..uplink_spec(&cable.near, suimon_ports::UplinkDriver::AfXdp)
    };
    let (devices, shelf) = (NetDevices::new().unwrap(), Arc::new(TestQueueHost::default()));
    let (observer, _notices) = Notices::new();
    let mut device = devices.open_uplink(PortId(1), &spec, shelf, observer).unwrap();
    assert_eq!(device.status().steering, Some(SteeringState::default()));
    device.set_steering_rules(&[rule(1, Some(10), 1), rule(2, None, 2)]);
    let state = device.status().steering.unwrap();
    assert!(state.rules.is_empty() && !state.is_exclusive);
    let expected = "does not support flow rules by destination address (Operation not supported";
    assert!(state.refusal.as_ref().unwrap().contains(expected), "{state:?}");
}
