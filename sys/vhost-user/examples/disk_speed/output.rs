//! Output of the measured rates.

use crate::parameters::Parameters;
use crate::{Peer, Rates};

fn three(mut numbers: Vec<f64>) -> String {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers[0], numbers[numbers.len() - 1]);
    format!("{:7.2} ({low:.2} to {high:.2})", numbers[numbers.len() / 2])
}

/// Prints the rates of all rounds as JSON.
pub(crate) fn print_json(peers: &[Peer]) {
    let of_round = |rates: &Rates| {
        serde_json::json!({
            "requests_per_second": rates.per_second,
            "requests_per_cpu_second": rates.per_cpu_second,
            "kicks_per_second": rates.kicks_per_second,
        })
    };
    let of_peer = |peer: &Peer| {
        let rounds: Vec<_> = peer.rounds.iter().map(of_round).collect();
        serde_json::json!({ "name": peer.name, "rounds": rounds })
    };
    println!("{}", peers.iter().map(of_peer).collect::<serde_json::Value>());
}

/// Prints medians, ranges and ratios as text.
pub(crate) fn print_medians(peers: &[Peer], parameters: &Parameters) {
    println!(
        "requests of {} KiB, depth {}; millions; median (lowest to highest) of {} rounds",
        parameters.load.bytes >> 10,
        parameters.depth,
        parameters.rounds
    );
    let cpu = |rates: &Rates| rates.per_cpu_second.unwrap_or(f64::NAN);
    for peer in peers {
        let row = |rate: &dyn Fn(&Rates) -> f64| three(peer.rounds.iter().map(rate).collect());
        println!(
            "{:24} a second {}   a CPU second {}   thousand kicks a second {}",
            peer.name,
            row(&|rates| rates.per_second / 1e6),
            row(&|rates| cpu(rates) / 1e6),
            row(&|rates| rates.kicks_per_second / 1e3),
        );
    }
    let Some((first, other_peers)) = peers.split_first() else { return };
    for other in other_peers {
        let ratio = |rate: &dyn Fn(&Rates) -> f64| {
            let pairs = first.rounds.iter().zip(&other.rounds);
            three(
                pairs
                    .map(|(first_rates, other_rates)| rate(first_rates) / rate(other_rates))
                    .collect(),
            )
        };
        println!(
            "{} / {}: a second {}, a CPU second {}",
            first.name,
            other.name,
            ratio(&|rates| rates.per_second),
            ratio(&cpu)
        );
    }
}
