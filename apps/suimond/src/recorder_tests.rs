//! Times at which records reach the file, and the limit of its length.

use std::time::Instant;

use tempfile::TempDir;

use super::*;

/// Deadline of conditions that hold within a second on an idle machine.
const DEADLINE: Duration = Duration::from_secs(60);

fn begin(folder: &TempDir, bytes_max: u64) -> (PathBuf, Recorder) {
    let path = folder.path().join("recording");
    let source =
        RecordingSource { version: "0".to_owned(), host: "test".to_owned(), began_unix_ms: 0 };
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
    let stream = sink.next_stream();
    // Far less than the buffer of the file, at intervals shorter than that of the flushes.
    while length(&path) == before {
        assert!(started.elapsed() < DEADLINE, "nothing was written to the file");
        assert!(sink.accept_block(stream, vec![1]));
        std::thread::sleep(Duration::from_millis(10));
    }
    recorder.end();
}

#[test]
fn the_file_contains_no_more_than_its_limit_and_a_mark_for_each_stream() {
    const LIMIT: u64 = 4096;
    let folder = TempDir::new().unwrap();
    let (path, recorder) = begin(&folder, LIMIT);
    let sink = recorder.sink();
    let streams = [sink.next_stream(), sink.next_stream()];
    // Bodies shorter than the headers of their blocks.
    for _ in 0..1000 {
        for stream in streams {
            sink.accept_block(stream, vec![1]);
        }
    }
    recorder.end();
    let mark = encode_block(&encode_lost(streams[0], LossReason::Full)).len() as u64;
    let length = length(&path);
    assert!(length > LIMIT / 2 && length <= LIMIT + 2 * mark, "{length}");
}
