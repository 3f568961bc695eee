//! Benchmark of software segmentation of a large TCP/IPv4 frame with the checksums of all segments,
//! compared with the kernel's. The kernel is driven by a program in C, compiled when the benchmark
//! runs.
//!
//! In one comparison both copy the payload: Suimon's engine creates a segment and copies it into a
//! separate slot, as into a guest's buffer; the kernel copies it into the segment's buffer while it
//! computes the checksum. In the other comparison neither copies: Suimon's segments are windows of
//! the large frame, the kernel's refer to its memory.
//!
//! The kernel's time is that of sending a frame through a packet socket to a device without
//! offloads, minus that of sending it to one that accepts it whole. It includes the allocation and
//! release of 45 segments' descriptors and the calls of the device, which drops them at once. It
//! does not include the system call or the copy into the kernel. Suimon's time includes the engine
//! and the copy; its buffers are allocated once, as in the switch. On both sides the same CPU has
//! just written or read the large frame.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use suimon_frame::{Frame, Offloads, Sum, VnetHeader, segment};
use suimon_rig::{Namespace, Rig};

use crate::c_program::{Needs, compile};
use crate::report::{Bar, Pair, Sample, Work, median};

const SOURCE: &str = include_str!("segmentation.c");
/// Payload of a segment with an MTU of 1500 and TCP timestamps.
const SEGMENT_BYTES: usize = 1448;
/// Maximum number of segments of an IPv4 packet.
const SEGMENTS: usize = 45;
const IP_AT: usize = 14;
const TCP_AT: usize = 34;
const HEADER_BYTES: usize = TCP_AT + 32;
/// Size of the slot of one segment.
const SLOT_BYTES: usize = 2048;
const WINDOW: Duration = Duration::from_millis(500);
/// Frames between two clock reads.
const ROUNDS: u32 = 100;
const DEVICE: &str = "tap0";

/// Whether segments contain a copy of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    Copied,
    InPlace,
}

impl Payload {
    /// Returns the mode of the C program.
    fn mode(self) -> &'static str {
        match self {
            Self::Copied => "linear",
            Self::InPlace => "paged",
        }
    }
}

/// Measures `pairs` pairs of each comparison.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let rig = Rig::new()?;
    let program = compile(&rig, "segmentation", SOURCE, Needs::Nothing);
    let benchmarks = [
        ("copied", "Segmentation of a 64 KB TCP frame in cache, segments copied", Payload::Copied),
        ("in-place", "The same, segments not copied", Payload::InPlace),
    ];
    let mut measured = Vec::new();
    for (name, title, payload) in benchmarks {
        let peer = "Linux' software GSO";
        let mut work = Work::new(&format!("segmentation-{name}"), title, peer, "µs")
            .less_is_better()
            .with_bar(Bar::Ratio(1.0));
        match &program {
            Ok(program) => measure_pairs(&rig, program, payload, pairs, &mut work)?,
            Err(error) => work.missing = Some(format!("{error:#}")),
        }
        measured.push(work);
    }
    Ok(measured)
}

fn measure_pairs(
    rig: &Rig,
    program: &str,
    payload: Payload,
    pairs: usize,
    work: &mut Work,
) -> Result<()> {
    let (mut sent_whole, mut sent_cut) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        let namespace = Namespace::new(rig, "segmentation")?;
        let whole_time = measure_kernel(&namespace, program, "whole", 1)?;
        let cut = measure_kernel(&namespace, program, payload.mode(), SEGMENTS)?;
        ensure!(
            cut > whole_time,
            "cutting takes the kernel no time: {cut} µs, without {whole_time} µs"
        );
        let peer = Sample::without_distance(cut - whole_time);
        work.push(Pair { peer, suimon: Sample::without_distance(measure_suimon(payload)?) });
        sent_whole.push(whole_time);
        sent_cut.push(cut);
    }
    let median_of = |times: Vec<f64>| median(times.into_iter()).unwrap_or_default();
    let (cut, whole_time) = (median_of(sent_cut), median_of(sent_whole));
    work.peer =
        format!("{}: {cut:.1} µs less {whole_time:.1} µs for a frame sent whole", work.peer);
    Ok(())
}

/// Measures the kernel, in microseconds per frame. Checks that the device receives the expected
/// number of pieces.
fn measure_kernel(namespace: &Namespace, program: &str, mode: &str, pieces: usize) -> Result<f64> {
    let seconds = WINDOW.as_secs_f64().to_string();
    let output = namespace.run(&[program, DEVICE, &seconds, mode])?;
    let mut figures = output.split_whitespace().map(str::parse::<f64>);
    let (Some(Ok(ns)), Some(Ok(piece_count))) = (figures.next(), figures.next()) else {
        anyhow::bail!("the kernel's time was not printed: {output}");
    };
    // The device also receives one or two other frames.
    ensure!(
        (piece_count - pieces as f64).abs() < 0.1,
        "the device was given {piece_count} pieces of a frame"
    );
    Ok(ns / 1e3)
}

/// Measures Suimon, in microseconds per frame.
fn measure_suimon(payload: Payload) -> Result<f64> {
    let mut frame = large_frame()?;
    let mut slots = vec![[0; SLOT_BYTES]; SEGMENTS];
    let started = Instant::now();
    let mut rounds = 0_u32;
    loop {
        for _ in 0..ROUNDS {
            cut(black_box(&mut frame), payload, &mut slots)?;
            black_box(&slots);
        }
        rounds += ROUNDS;
        let elapsed = started.elapsed();
        if elapsed >= WINDOW {
            return Ok(elapsed.as_secs_f64() * 1e6 / f64::from(rounds));
        }
    }
}

/// Segments the frame and copies each segment into a slot. Returns the number of segments.
fn cut(frame: &mut Frame, payload: Payload, slots: &mut [[u8; SLOT_BYTES]]) -> Result<usize> {
    let mut segments = segment(frame, false)?;
    let mut slots = slots.iter_mut();
    let mut count = 0;
    while let Some(segment) = segments.next_segment() {
        match payload {
            Payload::Copied => {
                let slot = slots.next().context("too many segments")?;
                slot[..segment.len()].copy_from_slice(segment.bytes());
            }
            Payload::InPlace => {
                black_box(segment.bytes());
            }
        }
        count += 1;
    }
    Ok(count)
}

/// Returns the frame that the kernel gets too: TCP over IPv4 with timestamps.
fn large_frame() -> Result<Frame> {
    let len = HEADER_BYTES + SEGMENTS * SEGMENT_BYTES;
    let mut bytes: Vec<u8> = (0..len).map(|index| (index * 7) as u8).collect();
    bytes[..HEADER_BYTES].fill(0);
    let mut copy_in =
        |offset: usize, content: &[u8]| bytes[offset..][..content.len()].copy_from_slice(content);
    let (source, destination) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    copy_in(0, &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45]);
    copy_in(IP_AT + 2, &((len - IP_AT) as u16).to_be_bytes());
    copy_in(IP_AT + 8, &[64, 6]);
    copy_in(IP_AT + 12, &source);
    copy_in(IP_AT + 16, &destination);
    copy_in(TCP_AT, &[1000_u16.to_be_bytes(), 2000_u16.to_be_bytes()].concat());
    copy_in(TCP_AT + 12, &[8 << 4, 0x10, 0xff, 0xff]);
    let pseudo = Sum::pseudo_ipv4(source, destination, 6, (len - TCP_AT) as u16);
    copy_in(TCP_AT + 16, &pseudo.word().to_be_bytes());
    copy_in(TCP_AT + 20, &[1, 1, 8, 10]);
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4,
        hdr_len: HEADER_BYTES as u16,
        gso_size: SEGMENT_BYTES as u16,
        csum_start: TCP_AT as u16,
        csum_offset: 16,
        num_buffers: 1,
    };
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    frame.validate_ingress(&header, Offloads::TCP)?;
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_segment_is_full_has_a_valid_checksum_and_its_own_slot() {
        let mut frame = large_frame().unwrap();
        let original = frame.bytes().to_vec();
        let mut slots = vec![[0; SLOT_BYTES]; SEGMENTS];
        assert_eq!(cut(&mut frame, Payload::InPlace, &mut slots).unwrap(), SEGMENTS);
        assert!(slots.iter().flatten().all(|byte| *byte == 0));
        assert_eq!(cut(&mut frame, Payload::Copied, &mut slots).unwrap(), SEGMENTS);
        assert_eq!(frame.bytes(), original);
        let payloads = original[HEADER_BYTES..].chunks_exact(SEGMENT_BYTES);
        assert_eq!(payloads.len(), SEGMENTS);
        for (slot, payload) in slots.iter().zip(payloads) {
            let segment = &slot[..HEADER_BYTES + SEGMENT_BYTES];
            assert_eq!(&segment[HEADER_BYTES..], payload);
            // The sum over a correct checksum and its data is all ones.
            assert_eq!(Sum::from_bytes(&segment[IP_AT..TCP_AT]).word(), 0xffff);
            let addresses =
                [IP_AT + 12, IP_AT + 16].map(|index| segment[index..][..4].try_into().unwrap());
            let bytes = (segment.len() - TCP_AT) as u16;
            let pseudo = Sum::pseudo_ipv4(addresses[0], addresses[1], 6, bytes);
            assert_eq!(pseudo.concat(Sum::from_bytes(&segment[TCP_AT..])).word(), 0xffff);
        }
    }
}
