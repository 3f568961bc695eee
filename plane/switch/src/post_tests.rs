use suimon_quantity::{Direction, PortId};

use super::*;

const HOME: WorkerId = WorkerId(0);
/// Worker that reads no mail.
const STARVED: WorkerId = WorkerId(1);
/// Worker that returns all parcels at once.
const QUICK: WorkerId = WorkerId(2);

fn post() -> FrameSender {
    FrameSender::new(Arc::new(Link::new(HOME, 0.into())))
}

fn queue(port: u32) -> QueueId {
    QueueId { port: PortId(port), direction: Direction::Egress, index: 0 }
}

/// Adds frames; returns the number that was accepted.
fn add(post: &mut FrameSender, owner: WorkerId, queue: QueueId, frames: usize) -> usize {
    let mut frame = Frame::new(0);
    (0..frames).filter(|_| post.add(owner, queue, &mut frame, false)).count()
}

/// Returns the parcels to send.
fn sent(post: &mut FrameSender) -> Vec<FrameMessage> {
    std::mem::take(&mut post.open)
}

#[test]
fn a_starved_worker_leaves_buffers_for_the_others() {
    let mut post = post();
    let kept = add(&mut post, STARVED, queue(1), FRAMES_MAX * 2);
    let parcels = sent(&mut post);
    assert!(kept >= FRAMES_MAX / 2, "{kept}");
    for _ in 0..100 {
        assert_eq!(add(&mut post, QUICK, queue(2), BATCH_FRAMES_MAX), BATCH_FRAMES_MAX);
        sent(&mut post).into_iter().for_each(return_to_owner);
        assert_eq!(add(&mut post, STARVED, queue(1), BATCH_FRAMES_MAX), 0);
    }
    // The worker finally reads its mail.
    parcels.into_iter().for_each(return_to_owner);
    assert_eq!(add(&mut post, STARVED, queue(1), FRAMES_MAX * 2), kept);
}

#[test]
fn seven_starved_workers_leave_a_batch_for_another() {
    let mut post = post();
    let mut parcels = Vec::new();
    for starved in 3..10 {
        for round in 0..FRAMES_MAX as u32 {
            // Parcels with one frame each, for many queues.
            add(&mut post, WorkerId(starved), queue(round), 1);
            parcels.append(&mut post.open);
        }
    }
    for _ in 0..100 {
        assert_eq!(add(&mut post, QUICK, queue(2), BATCH_FRAMES_MAX), BATCH_FRAMES_MAX);
        sent(&mut post).into_iter().for_each(return_to_owner);
    }
}

#[test]
fn frames_that_are_held_here_leave_buffers_too() {
    let mut post = post();
    let mut frame = Frame::new(0);
    let held: Vec<FrameMessage> =
        std::iter::from_fn(|| post.message_for(HOME, queue(1), &mut frame, false)).collect();
    assert!(held.len() >= FRAMES_MAX / 2, "{}", held.len());
    assert_eq!(add(&mut post, QUICK, queue(2), BATCH_FRAMES_MAX), BATCH_FRAMES_MAX);
}

#[test]
fn a_frame_that_did_not_fit_is_not_said_to_be_sent() {
    let mut post = post();
    let mut taken = 0;
    for _ in 0..FRAMES_MAX * 2 {
        taken += add(&mut post, STARVED, queue(1), 1);
    }
    let under_way: usize = sent(&mut post).iter().map(|parcel| parcel.frames.len()).sum();
    assert_eq!(taken, under_way);
}
