//! Test of a cluster with more members than a node knows.

use suimon_ports::{ClusterChange, ClusterKvStore};

use super::tests::node;
use crate::testing::{FakeCluster, Harness, wait_until};

const MEMBERS: &str = "/suimon/lab/members/";

fn names_of(node: &Harness) -> Vec<String> {
    node.node.cluster().members.iter().map(|member| member.name.clone()).collect()
}

#[test]
fn members_beyond_the_limit_are_considered_when_others_leave() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 1000);
    wait_until("n1 is a member", || names_of(&first).len() == 1);
    let record = cluster.value(&format!("{MEMBERS}n1")).unwrap();
    let added: Vec<ClusterChange> = (2..=1026)
        .map(|id| {
            let record = record.replacen("\"id\":1", &format!("\"id\":{id}"), 1).into_bytes();
            ClusterChange::Put(format!("{MEMBERS}m{id}"), record, None)
        })
        .collect();
    for changes in added.chunks(4) {
        cluster.commit(&[], changes).unwrap();
    }
    wait_until("1024 members are known", || names_of(&first).len() == 1024);
    // A later key shows that all earlier ones were processed.
    let mut known = names_of(&first);
    known.retain(|name| name != "n1");
    let alive = format!("/suimon/lab/alive/{}", known[0]);
    cluster.commit(&[], &[ClusterChange::Put(alive, b"x".to_vec(), None)]).unwrap();
    wait_until("a further node is running", || {
        let status = first.node.cluster();
        status.members.iter().any(|member| member.name == known[0] && member.is_alive)
    });
    let ignored: Vec<String> = cluster
        .keys(MEMBERS)
        .iter()
        .filter_map(|key| key.strip_prefix(MEMBERS))
        .filter(|name| *name != "n1" && !known.iter().any(|known| known == name))
        .map(str::to_owned)
        .collect();
    assert_eq!(ignored.len(), 2);
    let remove = |name: &str| {
        let change = ClusterChange::Remove(format!("{MEMBERS}{name}"));
        cluster.commit(&[], &[change]).unwrap();
    };
    let admitted = || {
        let names = names_of(&first);
        assert!(names.len() <= 1024);
        ignored.iter().filter(|name| names.contains(*name)).count()
    };
    remove(&known[1]);
    wait_until("one more member is known", || admitted() == 1);
    assert!(!names_of(&first).contains(&known[1]));
    remove(&known[2]);
    wait_until("all members are known", || admitted() == 2);
    assert_eq!(names_of(&first).len(), 1024);
}
