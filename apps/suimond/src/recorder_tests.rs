//! Times at which records reach the file, and the limit of its length.

use std::time::Instant;

use tempfile::TempDir;

use super::*;

/// Deadline of conditions that hold within a second on an idle machine.
const DEADLINE: Duration = Duration::from_secs(60);

fn begin(folder: &TempDir, bytes_max: u64) -> (PathBuf, Recorder) {
    let path = folder.path().join("recording");
    let source =
        RecordingSource { version: "0".to_owned(), host: "test".to_owned(), started_unix_ms: 0 };
    let recorder = RecordingFile::create(&path, bytes_max).unwrap().begin(&source).unwrap();
    (path, recorder)
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn records_reach_the_file_although_they_arrive_without_a_pause() {
    let folder = TempDir::new().unwrap();
    let (path, recorder) = begin(&folder, u64::MAX);
    let (sink, before, started) = (recorder.sink(), length(&path), Instant::now());
    let stream = sink.allocate_stream_id();
    // Far less than the buffer of the file, at intervals shorter than that of the flushes.
    while length(&path) == before {
        assert!(started.elapsed() < DEADLINE, "nothing was written to the file");
        assert!(sink.accept_block(stream, vec![1]));
        std::thread::sleep(Duration::from_millis(10));
    }
    recorder.end();
}

#[test]
fn the_file_contains_no_more_than_its_limit_and_one_mark_for_all_streams() {
    const LIMIT: u64 = 4096;
    let folder = TempDir::new().unwrap();
    let (path, recorder) = begin(&folder, LIMIT);
    let sink = recorder.sink();
    let streams = [sink.allocate_stream_id(), sink.allocate_stream_id()];
    // Bodies shorter than the headers of their blocks.
    for _ in 0..1000 {
        for stream in streams {
            sink.accept_block(stream, vec![1]);
        }
    }
    // Each instance of a policy begins a stream of its own.
    for _ in 0..1000 {
        sink.accept_block(sink.allocate_stream_id(), vec![1]);
    }
    recorder.end();
    let mark = encode_block(&encode_ended_early(ALL_STREAMS, LossReason::Full));
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.ends_with(&mark));
    let length = bytes.len() as u64;
    assert!(length > LIMIT / 2 && length <= LIMIT + mark.len() as u64, "{length}");
}

/// Queue without a thread that writes.
fn queue() -> (RecordQueue, Receiver<Message>) {
    let (sender, receiver) = channel();
    let queue = RecordQueue {
        sender: Mutex::new(sender),
        streams: AtomicU32::new(1),
        waiting: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        behind: Mutex::default(),
    };
    (queue, receiver)
}

#[test]
fn bytes_and_losses_that_are_not_written_are_bounded() {
    const BODY: usize = 1 << 20;
    let (queue, receiver) = queue();
    let stream = queue.allocate_stream_id();
    let accepted = (0..100).take_while(|_| queue.accept_block(stream, vec![0; BODY])).count();
    assert_eq!(accepted * BODY, WAITING_BYTES_MAX);
    assert_eq!(queue.waiting.load(Relaxed), WAITING_BYTES_MAX);
    // Names that are lost end no stream.
    assert!(!queue.accept_block(StreamId::default(), vec![0]));
    assert_eq!(*queue.behind.lock().unwrap(), BTreeSet::from([stream]));
    for count in 2..=OVERFLOWS_MAX {
        assert!(!queue.accept_block(queue.allocate_stream_id(), vec![0]));
        assert_eq!(queue.behind.lock().unwrap().len(), count);
    }
    for _ in 0..1000 {
        assert!(!queue.accept_block(queue.allocate_stream_id(), vec![0]));
        assert_eq!(*queue.behind.lock().unwrap(), BTreeSet::from([ALL_STREAMS]));
    }
    let messages = receiver.try_iter();
    assert_eq!(messages.filter(|message| matches!(message, Message::Overflow)).count(), 1);

    let folder = TempDir::new().unwrap();
    let path = folder.path().join("recording");
    let file = BufWriter::new(File::create(&path).unwrap());
    let mut out = OutputFile { into: file, bytes: 0, bytes_max: u64::MAX, is_complete: false };
    queue.write_overflows(&mut out).unwrap();
    assert!(out.is_complete && queue.behind.lock().unwrap().is_empty());
    out.write_or_complete(&[1]).unwrap();
    out.into.flush().unwrap();
    let mark = encode_block(&encode_ended_early(ALL_STREAMS, LossReason::Overload));
    assert_eq!(std::fs::read(&path).unwrap(), mark);
}
