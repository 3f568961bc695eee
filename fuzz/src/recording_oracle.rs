//! Fuzz oracle of the reader of policy recordings, and of the policies that it replays.
//!
//! The input is the body of a block. Each policy whose record of an initial state is valid is
//! created and receives the recorded steps.

use std::collections::BTreeMap;

use suimon_recording::{
    PolicyReplay, Record, RecordingError, StreamId, begin_replay, decode_block_header,
    decode_records, encode_block, verify_block_body,
};

/// Statistics of an input, with which tests verify that seeds reach the intended states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Policies created from a recorded initial state.
    pub begun: usize,
    /// Recorded steps that a policy executed.
    pub steps: usize,
    /// True if a record, an initial state or a step was rejected.
    pub refused: bool,
}

/// Reads the input, replays its policies, and encodes the input as a block again.
///
/// # Panics
///
/// The reader or a policy violates a rule.
pub fn check(input: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut machines = BTreeMap::<StreamId, Box<dyn PolicyReplay>>::new();
    let mut last = 0;
    for record in decode_records(input, 1000) {
        let (offset, record) = match record {
            Ok(record) => record,
            Err(RecordingError::InvalidRecord { offset, .. }) => {
                assert!((1000..1000 + input.len() as u64).contains(&offset));
                outcome.refused = true;
                break;
            }
            Err(other) => panic!("{other}"),
        };
        assert!(offset >= 1000 && offset >= last, "wrong offset of a record");
        last = offset;
        match record {
            Record::Begin { stream, at, kind, initial_state: birth, .. } => {
                match begin_replay(kind, at, birth) {
                    Ok(machine) => {
                        outcome.begun += 1;
                        machines.insert(stream, machine);
                    }
                    Err(_) => outcome.refused = true,
                }
            }
            Record::Step { stream, at, input, decision } => {
                let Some(machine) = machines.get_mut(&stream) else { continue };
                let mut now = Vec::new();
                match machine.step(at, input, &mut now) {
                    Ok(()) => {
                        outcome.steps += 1;
                        if now != decision {
                            let difference = machine.difference(decision, &now);
                            assert_ne!(difference.recorded, difference.recomputed);
                            assert!(!machine.describe_input(input).is_empty() || input.is_empty());
                        }
                    }
                    Err(_) => outcome.refused = true,
                }
            }
            Record::Origin(_) | Record::Names(_) | Record::EndedEarly { .. } => {}
        }
    }
    let block = encode_block(input);
    let (header, body) = block.split_first_chunk().expect("a block has a header");
    if let Ok(header) = decode_block_header(*header, 0) {
        assert_eq!((header.length as usize, body), (input.len(), input));
        assert_eq!(verify_block_body(header, body, 0), Ok(()));
    }
    outcome
}
