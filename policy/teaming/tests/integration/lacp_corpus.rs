//! LACP against arbitrary partners, checked by the oracle of the fuzz target: its corpus is
//! replayed, unmodified and damaged.

use crate::replay;
use std::path::Path;

use crate::lacp_oracle::check;

/// Environment variable that makes the test rewrite the seeds after a change to the scripts.
const WRITE_SEEDS: &str = "SUIMON_WRITE_SEEDS";

/// Opcodes of scripts. The upper bits of an opcode contain the member; operands follow.
const LATER: u8 = 0;
const LINK: u8 = 1;
const PARTNER: u8 = 2;
const BYTES: u8 = 3;
const MARKER: u8 = 4;
const OWN: u8 = 5;
const OTHER_MEMBER: u8 = 1 << 3;

/// Returns a script in which both members detect the same Partner and carry frames.
fn agreed() -> Vec<u8> {
    let mut script = vec![0, LINK, 1, LINK | OTHER_MEMBER, 1];
    for _ in 0..6 {
        // A second passes; the partner records the local end, is in sync, collects and distributes.
        script.extend([LATER, 100, PARTNER, 7, PARTNER | OTHER_MEMBER, 7]);
    }
    script
}

fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let script_with = |events: &[u8]| [agreed(), events.to_vec()].concat();
    vec![
        ("agreed", agreed()),
        ("silence", script_with(&[LATER, 255, LATER, 255, LATER, 255])),
        ("link-lost", script_with(&[LINK, 0, LATER, 10])),
        (
            "markers",
            script_with(&[MARKER, 0, MARKER, 2, MARKER, 4, MARKER, 6, LATER, 120, MARKER, 0]),
        ),
        ("looped", vec![0, LINK, 1, LATER, 120, OWN, 0, LATER, 120, OWN, 0]),
        ("forged", script_with(&[PARTNER, 0xc7, 77, 0x3d, LATER, 50])),
        ("noise", script_with(&[BYTES, 3, 1, 2, 3, BYTES, 0, LATER, 100])),
        ("passive", [vec![1], agreed()[1..].to_vec()].concat()),
    ]
}

#[test]
fn the_corpus_holds_a_script_of_each_kind_and_scripts_lead_where_they_should() {
    for (name, script) in seeds() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/lacp");
        let path = path.join(format!("seed-{name}"));
        if std::env::var_os(WRITE_SEEDS).is_some() {
            std::fs::write(&path, &script).unwrap();
        }
        let stored = std::fs::read(&path).unwrap_or_default();
        assert_eq!(stored, script, "{} is stale; run with {WRITE_SEEDS}=1", path.display());
        let outcome = check(&script);
        assert!(outcome.lacpdus > 0, "{name}");
        assert_eq!(outcome.used_both, name != "looped", "{name}: {outcome:?}");
        let stops = ["silence", "link-lost", "forged"];
        assert_eq!(outcome.was_stopped, stops.contains(&name), "{name}: {outcome:?}");
        // Three of the four simultaneous Markers are answered, and one later.
        let responses = if name == "markers" { 4 } else { 0 };
        assert_eq!(outcome.marker_responses, responses, "{name}");
    }
}

#[test]
fn the_corpus_passes_the_oracle_whole_and_damaged() {
    let check = |input: &[u8]| {
        check(input);
    };
    replay::corpus_passes("lacp", check);
    replay::damaged_corpus_passes("lacp", check);
    replay::any_bytes_pass(check);
}
