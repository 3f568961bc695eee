//! Recordings of policies with random inputs: they replay without differences, and modifications
//! are detected.

use anyhow::Result;
use suimon_recording::{
    LossReason, ObjectNames, RecordingError, StreamId, decode_records, encode_ended_early,
    encode_names,
};
use suimon_sim_kernel::RandomStream;

use super::read::Recording;
use super::replay::{Replay, replay};
use super::samples::{file, recorded, recorded_for, recording_sink, storage};
use super::settings::Setting;
use super::what_if::{WhatIfReport, what_if};

fn replayed(file: &[u8]) -> Result<Replay> {
    replay(Recording::new(file)?)
}

fn evaluate(file: &[u8], settings: &[&str]) -> Result<WhatIfReport> {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    what_if(Recording::new(file)?, &settings)
}

fn row<'a>(answer: &'a WhatIfReport, title: &str) -> (&'a str, &'a str) {
    let mut rows = answer.policies.iter().flat_map(|policy| &policy.rows);
    let row = rows.find(|row| row.figure == title).unwrap_or_else(|| panic!("{answer:#?}"));
    (&row.recorded, &row.what_if)
}

#[test]
fn a_replay_repeats_the_recorded_decisions() {
    let file = recorded_for(1000).file();
    let replay = replayed(&file).unwrap();
    assert!(replay.matches_recording(), "{}", replay.differences());
    let streams: Vec<(String, u64)> = replay
        .streams
        .iter()
        .map(|stream| (format!("{} {}", stream.policy, stream.name), stream.steps))
        .collect();
    let names: Vec<&str> = streams.iter().map(|(name, _)| name.as_str()).collect();
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
    let min_steps = [63, 200, 410, 210, 150, 10_000];
    assert!(
        streams.iter().zip(min_steps).all(|((_, steps), min_steps)| *steps > min_steps),
        "{streams:?}"
    );
    // An incomplete recording of a killed daemon is read up to its end.
    let cut = replayed(&file[..file.len() - 5]).unwrap();
    assert!(cut.matches_recording() && cut.truncated_at.is_some(), "{cut:?}");
}

#[test]
fn a_loss_mark_of_all_streams_applies_to_each_of_them() {
    let mut bodies = recorded().bodies();
    bodies.push(encode_ended_early(StreamId(0), LossReason::Full));
    let file = file(&bodies);
    let replay = replayed(&file).unwrap();
    assert!(replay.streams.len() > 1 && replay.matches_recording());
    assert!(replay.streams.iter().all(|stream| stream.loss_reason == Some(LossReason::Full)));
    let answer = evaluate(&file, &["team.both.algorithm=dynamic"]).unwrap();
    let notes = &answer.policies[0].notes;
    assert!(notes.iter().any(|note| note.contains("incomplete")), "{notes:?}");
}

/// Verifies that a modified byte in any decision is detected, for the decisions in a part of the
/// recording.
#[test]
fn one_changed_byte_in_a_decision_is_detected() {
    let bodies = recorded().bodies();
    let mut found_count = 0;
    let chosen = bodies.iter().enumerate();
    let chosen = chosen.filter(|(index, _)| *index < 6 || *index + 2 >= bodies.len());
    for (index, body) in chosen {
        for position in
            (0..body.len()).step_by(if body.len() > 2000 { body.len() / 40 } else { 31 })
        {
            let mut changed = bodies.clone();
            changed[index][position] ^= 1;
            // The checksum detects the modification and identifies the block.
            let mut damaged = file(&bodies);
            let block_offset: usize =
                12 + bodies[..index].iter().map(|body| body.len() + 8).sum::<usize>();
            damaged[block_offset + 8 + position] ^= 1;
            let error = replayed(&damaged).unwrap_err().downcast::<RecordingError>().unwrap();
            assert!(
                matches!(
                    error,
                    RecordingError::Checksum { offset, .. } if offset == block_offset as u64
                ),
                "{error}"
            );
            if !in_decision(body, position) {
                continue;
            }
            // With a recomputed checksum, the comparison detects the modification.
            match replayed(&file(&changed)) {
                Ok(replay) => {
                    assert!(!replay.matches_recording(), "block {index}, byte {position}");
                }
                Err(error) => assert!(error.is::<RecordingError>(), "{error}"),
            }
            found_count += 1;
        }
    }
    assert!(found_count > 20, "{found_count}");
}

/// Returns true if a byte of a body belongs to a decision.
fn in_decision(body: &[u8], position: usize) -> bool {
    let body_start = body.as_ptr() as usize;
    decode_records(body, 0).any(|record| {
        let Ok((_, suimon_recording::Record::Step { decision, .. })) = record else { return false };
        let decision_offset = decision.as_ptr() as usize - body_start;
        (decision_offset..decision_offset + decision.len()).contains(&position)
    })
}

/// Verifies that any file content is replayed, or rejected with location and reason.
#[test]
fn any_bytes_result_in_a_replay_or_an_error_with_its_location() {
    let bodies = recorded().bodies();
    let mut random = RandomStream::new(11, "hostile");
    let (mut rejected, mut read) = (0, 0);
    for _ in 0..300 {
        let mut changed: Vec<Vec<u8>> = bodies[..bodies.len().min(30)].to_vec();
        for _ in 0..random.draw_in_range(1, 4) {
            let index = random.draw_below(changed.len() as u64) as usize;
            let position = random.draw_below(changed[index].len() as u64) as usize;
            let old = changed[index][position];
            match random.draw_below(6) {
                // Mostly changed digits, which reach the policies as different inputs.
                0..=3 if old.is_ascii_digit() => {
                    changed[index][position] = b'0' + random.draw_below(10) as u8;
                }
                0..=3 => {}
                4 if random.draw_chance(20) => changed[index].truncate(position),
                4 => changed[index][position] = random.bits() as u8,
                _ => changed[index].insert(position, b'9'),
            }
            if changed[index].is_empty() {
                changed[index].push(0);
            }
        }
        let file = file(&changed);
        match replayed(&file) {
            Ok(_) => read += 1,
            Err(error) => {
                let error = error.downcast::<RecordingError>().unwrap();
                assert!(error.to_string().contains(" at offset "), "{error}");
                rejected += 1;
            }
        }
        let _ = evaluate(&file, &["team.algorithm=transport-ports", "vmq.max_processors=1"]);
    }
    assert!(rejected > 50 && read > 20, "{rejected} {read}");
    for (bytes, message) in [
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
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn another_algorithm_distributes_the_same_bytes_differently() {
    let file = recorded().file();
    let unchanged = evaluate(&file, &["team.both.algorithm=dynamic"]).unwrap();
    let (recorded, what_if) = row(&unchanged, "bytes by member 1");
    assert_eq!(recorded, what_if, "{unchanged:#?}");
    let answer = evaluate(&file, &["team.both.algorithm=transport-ports"]).unwrap();
    assert_eq!(answer.policies.len(), 1);
    let (recorded, what_if) = row(&answer, "team");
    assert_eq!(
        (recorded, what_if),
        ("switch-independent/dynamic", "switch-independent/transport-ports")
    );
    let percent = |text: &str| text.trim_end_matches(" %").parse::<f64>().unwrap();
    let (recorded, what_if) = row(&answer, "bytes by member 1");
    // The distribution by hash is uneven, that by load is even.
    assert!(
        (percent(recorded) - 50.0).abs() + 1.0 < (percent(what_if) - 50.0).abs(),
        "{answer:#?}"
    );
    let unknown = evaluate(&file, &["team.algorithm=hyper-v-port"]).unwrap();
    assert!(unknown.policies[0].notes[0].contains("is unknown"), "{unknown:#?}");
}

#[test]
fn with_fewer_workers_utilisation_and_lacking_time_rise() {
    let file = recorded().file();
    let unchanged = evaluate(&file, &["vmq.max_workers=4"]).unwrap();
    let (recorded, what_if) = row(&unchanged, "workers with load by queues, maximum");
    assert_eq!(recorded, what_if);
    let answer = evaluate(&file, &["vmq.wan.max_workers=1"]).unwrap();
    let former = evaluate(&file, &["vmq.wan.max_processors=1"]).unwrap();
    assert_eq!(row(&former, "workers with load by queues, maximum").1, "1", "the former name");
    let (recorded, what_if) = row(&answer, "workers with load by queues, maximum");
    assert_eq!((recorded, what_if), ("4", "1"), "{answer:#?}");
    let number = |text: &str| text.parse::<f64>().unwrap();
    let (recorded, what_if) = row(&answer, "seconds of load without a worker");
    assert!(number(recorded) == 0.0 && number(what_if) > 1.0, "{answer:#?}");
    let text = answer.text();
    assert!(text.contains("what if vmq.wan.max_workers=1"), "{text}");
}

#[test]
fn unanswerable_settings_are_reported() {
    let file = recorded().file();
    for (setting, message) in [
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
        let error = evaluate(&file, &[setting]).unwrap_err();
        assert!(format!("{error:#}").contains(message), "{setting}: {error:#}");
    }
    assert!("power.plan=x".parse::<Setting>().is_err());
    assert!("team.algorithm".parse::<Setting>().is_err());
}

#[test]
fn other_limits_change_the_shares_of_disks() {
    let (bodies, sink) = recording_sink();
    let names = [(70, "fast"), (71, "slow")].map(|(id, name)| (id, name.to_owned()));
    let names = ObjectNames { disks: names.into(), ..ObjectNames::default() };
    sink.accept_block(StreamId(0), encode_names(&names));
    storage(&sink, 2000);
    let file = bodies.file();
    let number = |text: &str| text.parse::<i64>().unwrap();
    let near = |actual: i64, expected: i64| (actual - expected).abs() * 100 < expected * 5;
    let rates = |setting: &str| {
        let answer = evaluate(&file, &[setting]).unwrap();
        let numbers_of = |title| {
            let (recorded, what_if) = row(&answer, title);
            (number(recorded), number(what_if))
        };
        (numbers_of("fast: operations per second"), numbers_of("slow: operations per second"))
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
    let answer = evaluate(&file, &["disk.slow.max_iops=none", "disk.slow.min_iops=7000"]).unwrap();
    assert!(
        answer.policies[0].notes.iter().any(|note| note.contains("would be rejected")),
        "{answer:#?}"
    );
    for (setting, message) in [
        ("disk.other.min_iops=5", "disk fast, disk slow"),
        ("disk.slow.min_iops=9000", "min_iops 9000 exceeds max_iops 2000"),
        ("disk.slow.colour=red", "the settings are min_iops, max_iops and weight"),
    ] {
        let error = evaluate(&file, &[setting]).unwrap_err();
        assert!(format!("{error:#}").contains(message), "{setting}: {error:#}");
    }
}
