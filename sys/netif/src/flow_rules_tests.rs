//! Tests that requests equal those recorded from ethtool(8), and that rules of other forms are
//! recognized.

use proptest::prelude::*;

use super::*;

const RULE_OF_PORT_AND_ADDRESS: &[u8; REQUEST_BYTES] =
    include_bytes!("../testdata/ethtool_rule_address_and_vlan.bin");
const RULE_OF_ADDRESS: &[u8; REQUEST_BYTES] =
    include_bytes!("../testdata/ethtool_rule_address.bin");

fn rule(vlan: Option<u16>) -> FlowRule {
    let mac = MacAddr::new([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
    FlowRule { mac, vlan: vlan.map(|vlan| VlanId::new(vlan).unwrap()), queue: 3 }
}

/// The recorded requests are those of ethtool(8) 6.1 for `-N DEVICE flow-type ether dst
/// 52:54:00:12:34:56 vlan 0x00a5 m 0xf000 action 3 loc 7`, with_data and without `vlan 0x00a5 m
/// 0xf000`. The masks of ethtool contain the bits to ignore. The 12 bytes after the command are
/// unused; ethtool leaves them uninitialized.
#[test]
fn a_request_is_the_one_that_ethtool_makes() {
    for (vlan, recorded) in [(Some(0xa5), RULE_OF_PORT_AND_ADDRESS), (None, RULE_OF_ADDRESS)] {
        let mut request = FlowRequest::for_insert(&rule(vlan), 7);
        let command = 0x32_u32.to_ne_bytes();
        request.0[..4].copy_from_slice(&command);
        assert_eq!(request.0[..4], recorded[..4]);
        assert_eq!(request.0[FLOW_TYPE_AT..], recorded[FLOW_TYPE_AT..], "{vlan:?}");
        assert_eq!(FlowRequest(*recorded).rule(), Some(rule(vlan)));
        assert_eq!(FlowRequest(*recorded).location(), 7);
    }
}

#[test]
fn rules_of_another_form_are_not_recognized_as_own() {
    let inserted = FlowRequest::for_insert(&rule(Some(5)), 1);
    assert!(inserted.rule().is_some());
    let changed = |offset: usize, bytes: &[u8]| {
        let mut other = inserted;
        other.0[offset..offset + bytes.len()].copy_from_slice(bytes);
        other.rule()
    };
    // Another type of flow; an additional address; a separate context.
    for kind in [0x01_u32, 0x0d, 0x12 | 1 << 31 | 1 << 30, 0x12 | 1 << 31 | 1 << 29] {
        assert_eq!(changed(FLOW_TYPE_AT, &kind.to_ne_bytes()), None, "{kind:#x}");
    }
    // Part of an address, a source and a type in addition, a VLAN priority, data.
    assert_eq!(changed(MASK_AT, &[0xff, 0xff, 0xff, 0, 0, 0]), None);
    assert_eq!(changed(MASK_AT + 6, &[0xff; 6]), None);
    assert_eq!(changed(MASK_AT + 12, &[0xff; 2]), None);
    assert_eq!(changed(MASK_EXTENSION_AT + TCI_AT, &[0xe0, 0]), None);
    assert_eq!(changed(MASK_EXTENSION_AT + EXTENSION_BYTES - 1, &[1]), None);
    // Drop, wake on LAN, the queue of a function, a group address.
    for queue in [u64::MAX, u64::MAX - 1, 1 << 32 | 2] {
        assert_eq!(changed(QUEUE_AT, &queue.to_ne_bytes()), None, "{queue:#x}");
    }
    assert_eq!(changed(HEADER_AT, &[1]), None);
    // Fields that are not matched may have any value.
    assert_eq!(changed(HEADER_AT + 6, &[9; 8]), inserted.rule());
    let unextended = changed(FLOW_TYPE_AT, &ETHER_FLOW.to_ne_bytes());
    assert_eq!(unextended, Some(rule(None)), "a rule without FLOW_EXT matches no VLAN");
}

#[test]
fn a_short_table_is_read_up_to_its_end() {
    let mut answer = rule_locations_request(3);
    assert_eq!(answer.len(), LOCATIONS_AT + 12);
    answer[DATA_AT..DATA_AT + 8].copy_from_slice(&16_u64.to_ne_bytes());
    for (relative, location) in [(0, 15_u32), (4, 4), (8, 9)] {
        let offset = LOCATIONS_AT + relative;
        answer[offset..offset + 4].copy_from_slice(&location.to_ne_bytes());
    }
    assert_eq!(decode_rule_locations(&answer), Some((vec![15, 4, 9], 16)));
    answer[COUNT_AT..COUNT_AT + 4].copy_from_slice(&2_u32.to_ne_bytes());
    assert_eq!(decode_rule_locations(&answer), Some((vec![15, 4], 16)));
    answer[COUNT_AT..COUNT_AT + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
    assert_eq!(decode_rule_locations(&answer).unwrap().0.len(), 3);
    assert_eq!(decode_rule_locations(&answer[..100]), None);
    assert_eq!(rule_locations_request(0).len(), REQUEST_BYTES);
}

proptest! {
    #[test]
    fn every_encoded_rule_decodes_to_the_same_rule(mac in any::<[u8; 6]>(), vlan in 0_u16..4095, queue: u16, location: u32) {
        let mac = MacAddr::new(mac);
        let rule = FlowRule { mac, vlan: VlanId::new(vlan), queue };
        let request = FlowRequest::for_insert(&rule, location);
        prop_assert_eq!(request.rule(), mac.is_station().then_some(rule));
        prop_assert_eq!(request.location(), location);
    }

    #[test]
    fn no_reply_causes_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode_rule_locations(&bytes);
        if let Some(first) = bytes.first_chunk() {
            let _ = FlowRequest(*first).rule();
        }
    }
}
