use std::net::IpAddr;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn answers(command: AgentCommand, chunks: &[&[u8]]) -> Vec<Result<Value, AgentError>> {
    let mut reader = AgentReader::new();
    let mut answers = Vec::new();
    for chunk in chunks {
        reader.handle_bytes(chunk);
        loop {
            match reader.poll_response(command) {
                Ok(None) => break,
                Ok(Some(value)) => answers.push(Ok(value)),
                Err(error) => {
                    answers.push(Err(error));
                    break;
                }
            }
        }
    }
    answers
}

#[test]
fn responses_of_earlier_clients_are_skipped() {
    let stale = b"{\"return\": {\"version\": \"1\"}}\n\xff{\"return\": 1}\n\xff{\"return\": 7}\n";
    assert_eq!(answers(AgentCommand::Sync(7), &[stale]), [Ok(json!(7))]);
    let chunks: Vec<&[u8]> = stale.chunks(5).collect();
    let answers = answers(AgentCommand::Sync(7), &chunks);
    assert_eq!(answers.last(), Some(&Ok(json!(7))));
}

#[test]
fn commands_are_lines_and_sync_resets_the_agent() {
    let sync = AgentCommand::Sync(7).bytes();
    assert_eq!(sync[0], 0xff);
    let command: Value = serde_json::from_slice(&sync[1..]).unwrap();
    assert_eq!(command, json!({ "execute": "guest-sync-delimited", "arguments": { "id": 7 } }));
    assert_eq!(AgentCommand::Thaw.bytes(), b"{\"execute\":\"guest-fsfreeze-thaw\"}\n");
}

#[test]
fn errors_and_invalid_responses_are_distinguished() {
    let refusal =
        b"\xff{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"no \\u001b[2J\"}}\n";
    let text = "no \u{fffd}[2J".to_owned();
    let command = "guest-fsfreeze-freeze";
    assert_eq!(
        answers(AgentCommand::Freeze, &[refusal]),
        [Err(AgentError::CommandFailed { command, text })]
    );
    for line in ["{}", "[]", "x", "{\"return\""] {
        let bytes = format!("{line}\n");
        let results = answers(AgentCommand::Freeze, &[b"\xff", bytes.as_bytes()]);
        assert!(
            matches!(results[..], [Err(AgentError::InvalidResponse { .. })]),
            "{line}: {results:?}"
        );
    }
    let long = vec![b' '; AGENT_LINE_BYTES_MAX];
    assert!(answers(AgentCommand::Freeze, &[b"\xff", &long])[0].is_err());
}

#[test]
fn malformed_interfaces_are_omitted() {
    let response = json!([
        { "name": "lo", "ip-addresses": [
            { "ip-address": "127.0.0.1", "ip-address-type": "ipv4", "prefix": 8 },
            { "ip-address": "127.0.0.1", "prefix": 33 },
            { "ip-address": "here", "prefix": 8 },
        ] },
        { "name": "eth0", "hardware-address": "52:54:00:78:00:01", "ip-addresses": [
            { "ip-address": "fe80::1", "ip-address-type": "ipv6", "prefix": 64 },
        ] },
        { "name": "eth1", "hardware-address": "52:54:00:78:00:01:02" },
        { "hardware-address": "52:54:00:78:00:01" },
        7,
    ]);
    let local: IpAddr = "127.0.0.1".parse().unwrap();
    let link: IpAddr = "fe80::1".parse().unwrap();
    let interfaces = decode_agent_interfaces(&response);
    let actual: Vec<_> = interfaces
        .iter()
        .map(|i| (i.name.as_str(), i.mac.is_some(), i.addresses.as_slice()))
        .collect();
    assert_eq!(
        actual,
        [("lo", false, &[(local, 8)][..]), ("eth0", true, &[(link, 64)]), ("eth1", false, &[])]
    );
    assert!(decode_agent_interfaces(&json!({})).is_empty());
    let many: Vec<Value> = (0..1000).map(|n| json!({ "name": format!("e{n}") })).collect();
    assert_eq!(decode_agent_interfaces(&json!(many)).len(), AGENT_INTERFACES_MAX);
    let address = json!({ "ip-address": "127.0.0.1", "ip-address-type": "ipv4", "prefix": 8 });
    let interfaces =
        decode_agent_interfaces(&json!([{ "name": "lo", "ip-addresses": vec![address; 1000] }]));
    assert_eq!(interfaces[0].addresses.len(), AGENT_ADDRESSES_MAX);
}

#[test]
fn guest_texts_are_sanitized() {
    let system =
        decode_agent_system(&json!({ "pretty-name": "a\u{1b}]0;x\u{7}\u{202e}b", "machine": 7 }));
    assert_eq!(system.name.as_deref(), Some("a\u{fffd}]0;x\u{fffd}\u{fffd}b"));
    assert_eq!((system.kernel, system.architecture), (None, None));
    let long = decode_agent_host_name(&json!({ "host-name": "x".repeat(1000) })).unwrap();
    assert_eq!(long.len(), AGENT_TEXT_CHARS_MAX);
    assert_eq!(decode_is_frozen(&json!("frozen")), Ok(true));
    assert!(decode_is_frozen(&json!("warm")).is_err());
    assert_eq!(decode_file_system_count(AgentCommand::Thaw, &json!(2)), Ok(2));
    assert!(decode_file_system_count(AgentCommand::Thaw, &json!(-1)).is_err());
}

proptest! {
    /// Arbitrary bytes cause no panic, and the result does not depend on how they are split.
    #[test]
    fn any_bytes_give_responses_or_errors(
        bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), Just(b'\n'), Just(b'{'), Just(b'"'), Just(b'}')], 0..200),
        cuts in prop::collection::vec(0_usize..200, 0..8),
    ) {
        let input = [b"\xff".as_slice(), &bytes.iter().map(|b| b & 0x7f).collect::<Vec<_>>()].concat();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < input.len()).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect();
        let at_once = answers(AgentCommand::Info, &[&input]);
        let end = at_once.iter().position(Result::is_err).map_or(at_once.len(), |index| index + 1);
        let in_pieces = answers(AgentCommand::Info, &pieces);
        prop_assert_eq!(&at_once[..end], &in_pieces[..end.min(in_pieces.len())]);
        for value in at_once.into_iter().flatten() {
            let _ = (decode_agent_version(&value), decode_agent_system(&value), decode_agent_interfaces(&value));
        }
    }
}
