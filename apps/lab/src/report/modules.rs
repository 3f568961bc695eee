//! Chart of CPU time by module.

use std::collections::BTreeMap;

use suimon_lab_run::{Case, LocalizedText, Run};

use super::chart::stacked_bars;
use super::page::bilingual_html;
use crate::profile::KERNEL_OTHER;

/// Number of modules with the most CPU time that the chart names. The others are summed as one.
const NAMED: usize = 5;

/// Returns the chart of CPU time by module, with its description, as HTML; empty if the run has no
/// profile.
pub(super) fn modules(run: &Run) -> String {
    let rows: Vec<(&Case, BTreeMap<&str, f64>)> =
        run.cases.iter().map(|case| (case, percent(run, case))).collect();
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (module, percent) in rows.iter().flat_map(|(_, percents)| percents) {
        *sums.entry(module).or_default() += percent;
    }
    let mut ranked: Vec<(&str, f64)> = sums.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ranked_modules =
        ranked.iter().map(|(module, _)| *module).filter(|module| *module != KERNEL_OTHER);
    let shown_modules: Vec<&str> = ranked_modules.take(NAMED).collect();
    let mut names: Vec<LocalizedText> =
        shown_modules.iter().map(|name| LocalizedText::untranslated(*name)).collect();
    names.push(LocalizedText::new("other", "その他"));
    let bars = rows.iter().map(|(case, percents)| {
        let mut parts: Vec<f64> =
            shown_modules.iter().map(|name| percents.get(name).copied().unwrap_or(0.0)).collect();
        parts.push(percents.values().sum::<f64>() - parts.iter().sum::<f64>());
        (&case.description, parts)
    });
    let title = LocalizedText::new("CPU time by module", "モジュール別の CPU 時間");
    let unit = "%";
    let Some(drawing) = stacked_bars(&title, &names, unit, bars.collect()) else {
        return String::new();
    };
    let note = bilingual_html(&LocalizedText::new(
        "CPU time of the whole machine during the measurement, in percent of one CPU, without \
         idle time. perf sampled all CPUs meanwhile, so values may be slightly lower than \
         without. Parts of the kernel are classified by function name; time with interrupts \
         disabled is attributed to the function that enables them again, often a lock. \
         profile.csv lists all modules.",
        "測定中のマシン全体の CPU 時間 (CPU 1 個に対する %、アイドルを除く)。測定中は perf が全 CPU \
         をサンプリングするため、値はわずかに悪くなることがあります。カーネルの内訳は関数名で分類しています。割り込み禁止中の時間は、割り込みを許可し直した関数 (多くはロック) \
         に数えられます。全モジュールは profile.csv にあります。",
    ));
    format!(
        "<h2>{}</h2><section class=chart><div class=drawings>{drawing}</div></section><p \
         class=soft>{note}</p>",
        bilingual_html(&title)
    )
}

/// Returns the CPU time of a case by module, in percent of one CPU, over all its repetitions.
fn percent<'a>(run: &'a Run, case: &Case) -> BTreeMap<&'a str, f64> {
    let profiles = || {
        let parts = run.repetitions.iter().filter(|part| part.case_id == case.id);
        parts.filter_map(|part| part.profile.as_ref())
    };
    let seconds: f64 = profiles().map(|profile| profile.duration_s).sum();
    let mut sums = BTreeMap::new();
    for module in profiles().flat_map(|profile| &profile.modules) {
        *sums.entry(module.name.as_str()).or_default() +=
            module.cpu_seconds / seconds.max(1e-9) * 100.0;
    }
    sums
}

#[cfg(test)]
mod tests {
    use suimon_lab_run::{Profile, ProfiledModule, Repetition};

    use super::*;

    #[test]
    fn the_five_that_take_most_have_names() {
        let mut run = crate::results::tests::run("x".to_owned());
        assert_eq!(modules(&run), "");
        let case = Case::new("a", LocalizedText::untranslated("one"), 1.0);
        run.cases.push(case.clone());
        let module = |number: u32| ProfiledModule {
            name: format!("module {number}"),
            cpu_seconds: f64::from(number),
        };
        for _ in 0..2 {
            let profile =
                Profile { duration_s: 10.0, modules: (1..=7).rev().map(module).collect() };
            let part = Repetition {
                case_id: case.id.clone(),
                profile: Some(profile),
                ..Repetition::default()
            };
            run.repetitions.push(part);
        }
        let percents = percent(&run, &case);
        assert!((percents["module 7"] - 70.0).abs() < 1e-9, "{percents:?}");
        let html = modules(&run);
        assert!(html.contains("module 3") && !html.contains("module 2"), "{html}");
        // 1 s and 2 s of 28 s in ten.
        assert!(html.contains("other: 30 %, 11 %"), "{html}");
    }
}
