//! Recordings of policies with random inputs: they replay without differences, and modifications
//! are detected.

use anyhow::Result;
use suimon_recording::{Names, RecordingError, StreamId, encode_names, records};
use suimon_sim_kernel::RandomStream;

use super::read::Recording;
use super::replay::{Replay, replay};
use super::samples::{file, recorded, recorded_for, recording_sink, storage};
use super::settings::Setting;
use super::what_if::{WhatIfReport, what_if};

fn replayed(file: &[u8]) -> Result<Replay> {
    replay(Recording::new(file)?)
}

fn asked(file: &[u8], settings: &[&str]) -> Result<WhatIfReport> {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    what_if(Recording::new(file)?, &settings)
}

fn row<'a>(answer: &'a WhatIfReport, what: &str) -> (&'a str, &'a str) {
    let mut rows = answer.policies.iter().flat_map(|of| &of.rows);
    let row = rows.find(|row| row.what == what).unwrap_or_else(|| panic!("{answer:#?}"));
    (&row.recorded, &row.what_if)
}

#[test]
fn what_was_recorded_is_decided_again() {
    let file = recorded_for(1000).file();
    let replay = replayed(&file).unwrap();
    assert!(replay.is_same(), "{}", replay.differences());
    let told: Vec<(String, u64)> =
        replay.streams.iter().map(|of| (format!("{} {}", of.policy, of.name), of.steps)).collect();
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "team both",
            "lacp both",
            "vmq wan",
            "cluster-member san",
            "cluster-leader san",
            "storage-qos 2"
        ]
    );
    let least = [63, 200, 410, 210, 150, 10_000];
    assert!(told.iter().zip(least).all(|((_, steps), least)| *steps > least), "{told:?}");
    // An incomplete recording of a killed daemon is read up to its end.
    let cut = replayed(&file[..file.len() - 5]).unwrap();
    assert!(cut.is_same() && cut.cut.is_some(), "{cut:?}");
}

/// Verifies that a modified byte in any decision is detected, in a part of the recording.
#[test]
fn one_changed_byte_in_a_decision_is_found_out() {
    let bodies = recorded().bodies();
    let mut found = 0;
    let chosen = bodies.iter().enumerate();
    let chosen = chosen.filter(|(at, _)| *at < 6 || *at + 2 >= bodies.len());
    for (at, body) in chosen {
        for place in (0..body.len()).step_by(if body.len() > 2000 { body.len() / 40 } else { 31 }) {
            let mut changed = bodies.clone();
            changed[at][place] ^= 1;
            // The checksum detects the modification and identifies the block.
            let mut damaged = file(&bodies);
            let begins: usize = 12 + bodies[..at].iter().map(|of| of.len() + 8).sum::<usize>();
            damaged[begins + 8 + place] ^= 1;
            let error = replayed(&damaged).unwrap_err().downcast::<RecordingError>().unwrap();
            assert!(
                matches!(error, RecordingError::Checksum { offset, .. } if offset == begins as u64),
                "{error}"
            );
            if !in_decision(body, place) {
                continue;
            }
            // With a recomputed checksum, the comparison detects the modification.
            match replayed(&file(&changed)) {
                Ok(replay) => assert!(!replay.is_same(), "block {at}, byte {place}"),
                Err(error) => assert!(error.is::<RecordingError>(), "{error}"),
            }
            found += 1;
        }
    }
    assert!(found > 20, "{found}");
}

/// Returns true if a byte of a body belongs to a decision.
fn in_decision(body: &[u8], place: usize) -> bool {
    let begins = body.as_ptr() as usize;
    records(body, 0).any(|record| {
        let Ok((_, suimon_recording::Record::Step { decision, .. })) = record else { return false };
        let from = decision.as_ptr() as usize - begins;
        (from..from + decision.len()).contains(&place)
    })
}

/// Verifies that any file content is replayed, or rejected with location and reason.
#[test]
fn any_bytes_are_an_answer_or_an_error_with_its_place() {
    let bodies = recorded().bodies();
    let mut random = RandomStream::new(11, "hostile");
    let (mut refused, mut read) = (0, 0);
    for _ in 0..300 {
        let mut changed: Vec<Vec<u8>> = bodies[..bodies.len().min(30)].to_vec();
        for _ in 0..random.within(1, 4) {
            let at = random.below(changed.len() as u64) as usize;
            let place = random.below(changed[at].len() as u64) as usize;
            let old = changed[at][place];
            match random.below(6) {
                // Mostly changed digits, which reach the policies as different inputs.
                0..=3 if old.is_ascii_digit() => {
                    changed[at][place] = b'0' + random.below(10) as u8;
                }
                0..=3 => {}
                4 if random.percent(20) => changed[at].truncate(place),
                4 => changed[at][place] = random.bits() as u8,
                _ => changed[at].insert(place, b'9'),
            }
            if changed[at].is_empty() {
                changed[at].push(0);
            }
        }
        let file = file(&changed);
        match replayed(&file) {
            Ok(_) => read += 1,
            Err(error) => {
                let error = error.downcast::<RecordingError>().unwrap();
                assert!(error.to_string().contains(" at offset "), "{error}");
                refused += 1;
            }
        }
        let _ = asked(&file, &["team.algorithm=transport-ports", "vmq.max_processors=1"]);
    }
    assert!(refused > 50 && read > 20, "{refused} {read}");
    for (bytes, words) in [
        (&b""[..], "does not begin like a recording"),
        (
            b"SUIMONRC\x01\0\0\0",
            "format version 1, and this program reads version 3; use the `sim` of the release",
        ),
        (b"SUIMONRC\x02\0\0\0", "format version 2"),
        (b"SUIMONRC\x04\0\0\0", "format version 4"),
        (b"SUIMONRC\x03\0\0\0\xff\xff\xff\xff\0\0\0\0", "block at offset 12: 4294967295 bytes"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0", "does not begin like a recording"),
    ] {
        let error = replayed(bytes).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn another_algorithm_would_have_carried_the_same_bytes_otherwise() {
    let file = recorded().file();
    let same = asked(&file, &["team.both.algorithm=dynamic"]).unwrap();
    let (was, would) = row(&same, "bytes by member 1");
    assert_eq!(was, would, "{same:#?}");
    let answer = asked(&file, &["team.both.algorithm=transport-ports"]).unwrap();
    assert_eq!(answer.policies.len(), 1);
    let (was, would) = row(&answer, "team");
    assert_eq!((was, would), ("switch-independent/dynamic", "switch-independent/transport-ports"));
    let percent = |text: &str| text.trim_end_matches(" %").parse::<f64>().unwrap();
    let (was, would) = row(&answer, "bytes by member 1");
    // The distribution by hash is uneven, that by load is even.
    assert!((percent(was) - 50.0).abs() + 1.0 < (percent(would) - 50.0).abs(), "{answer:#?}");
    let unknown = asked(&file, &["team.algorithm=hyper-v-port"]).unwrap();
    assert!(unknown.policies[0].notes[0].contains("is unknown"), "{unknown:#?}");
}

#[test]
fn fewer_workers_would_have_been_busier_and_short() {
    let file = recorded().file();
    let same = asked(&file, &["vmq.max_workers=4"]).unwrap();
    let (was, would) = row(&same, "workers with load by queues, maximum");
    assert_eq!(was, would);
    let answer = asked(&file, &["vmq.wan.max_workers=1"]).unwrap();
    let former = asked(&file, &["vmq.wan.max_processors=1"]).unwrap();
    assert_eq!(row(&former, "workers with load by queues, maximum").1, "1", "the former name");
    let (was, would) = row(&answer, "workers with load by queues, maximum");
    assert_eq!((was, would), ("4", "1"), "{answer:#?}");
    let number = |text: &str| text.parse::<f64>().unwrap();
    let (was, would) = row(&answer, "seconds of load without a worker");
    assert!(number(was) == 0.0 && number(would) > 1.0, "{answer:#?}");
    let text = answer.text();
    assert!(text.contains("what if vmq.wan.max_workers=1"), "{text}");
}

#[test]
fn what_cannot_be_asked_is_said() {
    let file = recorded().file();
    for (setting, words) in [
        (
            "team.other.algorithm=dynamic",
            "the recorded objects are: cluster-leader san, cluster-member san, lacp both, storage-qos 2, team both, vmq wan",
        ),
        ("team.colour=red", "the settings are algorithm, mode and min_links"),
        ("team.algorithm=best", "unknown variant `best`"),
        ("team.min_links=3", "the team with this setting"),
        ("vmq.max_workers=0", "VMQ with this setting"),
        ("vmq.max_workers=many", "invalid type"),
        ("vmq.queues=1", "max_workers, mode, enabled, base_worker, max_worker_number, parking"),
    ] {
        let error = asked(&file, &[setting]).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{setting}: {error:#}");
    }
    assert!("power.plan=x".parse::<Setting>().is_err());
    assert!("team.algorithm".parse::<Setting>().is_err());
}

#[test]
fn other_limits_would_have_given_disks_other_parts() {
    let (kept, sink) = recording_sink();
    let names = [(70, "fast"), (71, "slow")].map(|(id, name)| (id, name.to_owned()));
    let names = Names { disks: names.into(), ..Names::default() };
    sink.accept_block(StreamId(0), encode_names(&names));
    storage(&sink, 2000);
    let file = kept.file();
    let number = |text: &str| text.parse::<i64>().unwrap();
    let near = |of: i64, wanted: i64| (of - wanted).abs() * 100 < wanted * 5;
    let rates = |setting: &str| {
        let answer = asked(&file, &[setting]).unwrap();
        let of = |what| {
            let (was, would) = row(&answer, what);
            (number(was), number(would))
        };
        (of("fast: operations per second"), of("slow: operations per second"))
    };
    let (fast, slow) = rates("disk.slow.max_iops=2000");
    assert!(
        near(slow.0, 2000) && near(slow.1, slow.0) && near(fast.1, fast.0),
        "{fast:?} {slow:?}"
    );
    let (fast, slow) = rates("disk.slow.max_iops=500");
    assert!(near(slow.1, 500) && fast.1 >= fast.0, "{fast:?} {slow:?}");
    let (fast, slow) = rates("disk.fast.max_iops=3000");
    assert!(near(fast.1, 3000) && near(slow.1, 2000), "{fast:?} {slow:?}");
    let answer = asked(&file, &["disk.slow.max_iops=none", "disk.slow.min_iops=7000"]).unwrap();
    assert!(
        answer.policies[0].notes.iter().any(|note| note.contains("would be rejected")),
        "{answer:#?}"
    );
    for (setting, words) in [
        ("disk.other.min_iops=5", "disk fast, disk slow"),
        ("disk.slow.min_iops=9000", "min_iops 9000 exceeds max_iops 2000"),
        ("disk.slow.colour=red", "the settings are min_iops, max_iops and weight"),
    ] {
        let error = asked(&file, &[setting]).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{setting}: {error:#}");
    }
}
