use std::collections::BTreeSet;

use super::*;

fn client(read_percent: u8, is_random: bool) -> Client {
    let pattern = RequestPattern::Mixed { read_percent, is_random };
    let spec = ClientSpec { pattern, depth: 4, bytes: 8192, disk_bytes: 64 << 10 };
    Client::new(spec, Arc::new(never_readable().unwrap()))
}

/// Receives and completes requests, oldest first, until `requests` are complete; returns all.
fn complete_requests(client: &mut Client, requests: usize) -> Vec<DiskRequest> {
    let mut requests_all = Vec::new();
    for count in 0..requests {
        client.receive(32, &mut requests_all).unwrap();
        assert_eq!(requests_all.len() - count, 4, "always as many requests in flight as the depth");
        assert!(client.arm() == ArmResult::Armed);
        let under_way: BTreeSet<u32> =
            requests_all[count..].iter().map(|request| request.tag).collect();
        assert_eq!(under_way.len(), 4, "each has a tag of its own");
        assert!(under_way.iter().all(|tag| *tag < client.in_flight_max()));
        client.complete(requests_all[count].tag, DiskOutcome::Done);
    }
    requests_all
}

#[test]
fn a_mixed_client_reads_at_the_configured_ratio() {
    for (percent, min_reads, max_reads) in [(0, 0, 0), (67, 620, 720), (100, 1000, 1000)] {
        let requests_all = complete_requests(&mut client(percent, true), 1000);
        let reads =
            requests_all[..1000].iter().filter(|request| request.op == DiskOp::Read).count();
        assert!((min_reads..=max_reads).contains(&reads), "{percent} %: {reads} of 1000");
        assert!(requests_all.iter().all(|request| request.range.end() <= 64 << 10));
    }
}

#[test]
fn a_sequential_client_begins_again_at_the_end() {
    let requests_all = complete_requests(&mut client(100, false), 20);
    let blocks: Vec<u64> =
        requests_all[..20].iter().map(|request| request.range.offset() / 8192).collect();
    let expected: Vec<u64> = (0..20).map(|number| number % 8).collect();
    assert_eq!(blocks, expected);
}
