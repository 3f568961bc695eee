use suimon_quantity::{Direction, PortId};

use super::*;

const HOME: WorkerId = WorkerId(0);
/// Worker that reads no messages.
const STARVED: WorkerId = WorkerId(1);
/// Worker that returns all frame messages at once.
const QUICK: WorkerId = WorkerId(2);

fn new_sender() -> FrameSender {
    FrameSender::new(Arc::new(WorkerMailbox::new(HOME, 0.into())))
}

fn queue(port: u32) -> QueueId {
    QueueId { port: PortId(port), direction: Direction::Egress, index: 0 }
}

/// Adds `frames` frames; returns the number that was accepted.
fn add(frame_sender: &mut FrameSender, owner: WorkerId, queue: QueueId, frames: usize) -> usize {
    let mut frame = Frame::new(0);
    (0..frames).filter(|_| frame_sender.add(owner, queue, &mut frame, false)).count()
}

/// Returns the messages to send, and clears the list.
fn take_messages(frame_sender: &mut FrameSender) -> Vec<FrameMessage> {
    std::mem::take(&mut frame_sender.open)
}

#[test]
fn a_starved_worker_leaves_buffers_for_the_others() {
    let mut frame_sender = new_sender();
    let count = add(&mut frame_sender, STARVED, queue(1), FRAMES_MAX * 2);
    let messages = take_messages(&mut frame_sender);
    assert!(count >= FRAMES_MAX / 2, "{count}");
    for _ in 0..100 {
        assert_eq!(add(&mut frame_sender, QUICK, queue(2), BATCH_FRAMES_MAX), BATCH_FRAMES_MAX);
        take_messages(&mut frame_sender).into_iter().for_each(return_to_sender);
        assert_eq!(add(&mut frame_sender, STARVED, queue(1), BATCH_FRAMES_MAX), 0);
    }
    // The worker finally reads its messages.
    messages.into_iter().for_each(return_to_sender);
    assert_eq!(add(&mut frame_sender, STARVED, queue(1), FRAMES_MAX * 2), count);
}

#[test]
fn seven_starved_workers_leave_a_batch_for_another() {
    let mut frame_sender = new_sender();
    let mut messages = Vec::new();
    for starved in 3..10 {
        for round in 0..FRAMES_MAX as u32 {
            // Messages with one frame each, for many queues.
            add(&mut frame_sender, WorkerId(starved), queue(round), 1);
            messages.append(&mut frame_sender.open);
        }
    }
    for _ in 0..100 {
        assert_eq!(add(&mut frame_sender, QUICK, queue(2), BATCH_FRAMES_MAX), BATCH_FRAMES_MAX);
        take_messages(&mut frame_sender).into_iter().for_each(return_to_sender);
    }
}

#[test]
fn frames_that_are_held_here_leave_buffers_too() {
    let mut frame_sender = new_sender();
    let mut frame = Frame::new(0);
    let messages: Vec<FrameMessage> =
        std::iter::from_fn(|| frame_sender.create_message(HOME, queue(1), &mut frame, false))
            .collect();
    assert!(messages.len() >= FRAMES_MAX / 2, "{}", messages.len());
    assert_eq!(add(&mut frame_sender, QUICK, queue(2), BATCH_FRAMES_MAX), BATCH_FRAMES_MAX);
}

#[test]
fn a_frame_that_did_not_fit_is_not_reported_as_sent() {
    let mut frame_sender = new_sender();
    let mut count = 0;
    for _ in 0..FRAMES_MAX * 2 {
        count += add(&mut frame_sender, STARVED, queue(1), 1);
    }
    let under_way: usize =
        take_messages(&mut frame_sender).iter().map(|message| message.frames.len()).sum();
    assert_eq!(count, under_way);
}
