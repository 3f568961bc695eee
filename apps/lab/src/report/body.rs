//! Body of a report about one run.

use suimon_lab_run::{LocalizedText, Repetition, RunOrigin, Statistics};

use super::background_load::background_load_note;
use super::evaluated_run::EvaluatedRun;
use super::modules::modules;
use super::page::{bilingual_html, escape_html, table};
use crate::documents::document_title;
use crate::evaluation::{Agreement, EvaluatedFigure};
use crate::number::format_number;

/// Returns links to the sections of a report about several runs.
pub(super) fn contents(runs: &[EvaluatedRun]) -> String {
    let mut html = String::from("<ul>");
    for read in runs {
        html += &format!(
            "<li><a href=\"#{}\">{}</a> {}</li>",
            escape_html(&read.run.id),
            bilingual_html(&read.plan.header.title),
            bilingual_html(&read.verdict)
        );
    }
    html + "</ul>"
}

/// Returns the complete report of a run, from the question to the versions of tools.
pub(super) fn body(read: &EvaluatedRun) -> String {
    let (head, run) = (&read.plan.header, &read.run);
    let mut html = format!("<article id=\"{}\">", escape_html(&run.id));
    html += &format!(
        "<p class=soft>{} · {} · {}</p>",
        escape_html(&head.id),
        bilingual_html(&origin(&run.origin)),
        escape_html(&run.started_at)
    );
    html += &format!(
        "<h1>{}</h1><p class=question>{}</p>",
        bilingual_html(&head.title),
        bilingual_html(&head.question)
    );
    html += &format!("<div class=verdict><p>{}</p></div>", bilingual_html(&read.verdict));
    if let Some(reason) = &run.aborted_reason {
        let words = LocalizedText::new(
            format!("The run is incomplete: {reason}."),
            format!("この測定は途中までです ({reason})。"),
        );
        html += &format!("<div class=\"verdict noise\"><p>{}</p></div>", bilingual_html(&words));
    }
    let (is_noisy, quietness) = background_load_note(&run.machine);
    if is_noisy && run.origin == RunOrigin::Real {
        html +=
            &format!("<div class=\"verdict noise\"><p>{}</p></div>", bilingual_html(&quietness));
    }
    html += &figures(read);
    let charts: String = head.charts.iter().map(|chart| super::chart::draw(chart, run)).collect();
    if !charts.is_empty() {
        html += &format!(
            "<h2>{}</h2>{charts}",
            bilingual_html(&LocalizedText::new("Charts", "グラフ"))
        );
    }
    html += &modules(run);
    html += &published_and_setup(read);
    html += &values(read);
    html += &failures(read);
    html += &circumstances(read, &quietness);
    html + "</article>\n"
}

fn origin(origin: &RunOrigin) -> LocalizedText {
    match origin {
        RunOrigin::Real => LocalizedText::new("measured on this host", "このホストでの実測"),
        RunOrigin::Simulated { scenario, seed, .. } => LocalizedText::new(
            format!("simulated: scenario {scenario}, seed {seed}"),
            format!("シミュレーション: シナリオ {scenario}、シード {seed}"),
        ),
    }
}

fn head(cells: &[(&str, &str)]) -> Vec<String> {
    cells.iter().map(|(en, ja)| bilingual_html(&LocalizedText::new(*en, *ja))).collect()
}

/// Returns the HTML table of published, measured and simulated values.
fn figures(read: &EvaluatedRun) -> String {
    let heading = bilingual_html(&LocalizedText::new(
        "Published, measured, simulated",
        "公表値・実測・シミュレーション",
    ));
    if read.run.origin != RunOrigin::Real || read.evaluated_figures.is_empty() {
        return simulated_figures(read, &heading);
    }
    let mut rows = vec![head(&[
        ("figure", "数値"),
        ("published", "公表値"),
        ("measured on this host", "実測"),
        ("simulated", "シミュレーション"),
        ("", ""),
    ])];
    rows.extend(read.evaluated_figures.iter().map(figure));
    let note = bilingual_html(&LocalizedText::new(
        "± is half of the 95 % confidence interval of the mean. A figure agrees if its whole \
         interval is within the published range.",
        "± は平均の 95 % 信頼区間の半幅です。区間全体が公表値の範囲に入るとき「一致」とします。",
    ));
    format!("<h2>{heading}</h2>{}<p class=soft>{note}</p>", table("figures", &rows))
}

fn figure(figure: &EvaluatedFigure) -> Vec<String> {
    let measured = figure.measured_text().map_or_else(|| "–".to_owned(), |text| escape_html(&text));
    let measured = match figure.measured {
        Some(estimate) if estimate.sample_count > 1 => {
            format!("{measured} <span class=soft>n = {}</span>", estimate.sample_count)
        }
        _ => measured,
    };
    let simulated = figure
        .simulated
        .as_ref()
        .map_or_else(|| "–".to_owned(), |simulated| escape_html(&simulated.simulated));
    let class = match figure.agreement {
        Agreement::Agrees => "agrees",
        Agreement::Differs => "differs",
        Agreement::Inconclusive => "open",
        Agreement::NotMeasured | Agreement::Informational => "soft",
    };
    let agreement =
        format!("<span class={class}>{}</span>", bilingual_html(&figure.agreement_text()));
    vec![
        bilingual_html(&figure.quantity),
        bilingual_html(&figure.published),
        measured,
        simulated,
        agreement,
    ]
}

fn simulated_figures(read: &EvaluatedRun, heading: &str) -> String {
    if read.run.simulated_figures.is_empty() {
        return String::new();
    }
    let mut rows = vec![head(&[
        ("step", "段階"),
        ("of", "対象"),
        ("published", "公表値"),
        ("simulated", "シミュレーション"),
        ("", ""),
    ])];
    for figure in &read.run.simulated_figures {
        let (class, finding) = match figure.is_within_tolerance {
            true => ("agrees", LocalizedText::new("agrees", "一致")),
            false => ("differs", LocalizedText::new("differs", "相違")),
        };
        let texts = [&figure.step, &figure.quantity, &figure.published, &figure.simulated]
            .map(|text| escape_html(text));
        let mut row = texts.to_vec();
        row.push(format!("<span class={class}>{}</span>", bilingual_html(&finding)));
        rows.push(row);
    }
    format!("<h2>{heading}</h2>{}", table("figures", &rows))
}

fn published_and_setup(read: &EvaluatedRun) -> String {
    let plan = &read.plan.header;
    let mut html =
        format!("<h2>{}</h2>", bilingual_html(&LocalizedText::new("Published", "公表された実験")));
    html += &format!(
        "<p>{}</p><p class=soft>{}</p>",
        bilingual_html(&plan.published),
        bilingual_html(&document_title(&plan.document))
    );
    html += &format!(
        "<h2>{}</h2><ul>",
        bilingual_html(&LocalizedText::new("Setup on this host", "ここでの構成"))
    );
    for words in &read.run.setup {
        html += &format!("<li>{}</li>", bilingual_html(words));
    }
    html += "</ul>";
    if !read.run.skipped_work.is_empty() {
        html += &format!(
            "<h3>{}</h3><ul>",
            bilingual_html(&LocalizedText::new("Missing on this host", "このマシンにないもの"))
        );
        for words in &read.run.skipped_work {
            html += &format!("<li>{}</li>", bilingual_html(words));
        }
        html += "</ul>";
    }
    html
}

/// Returns the HTML table of all measured values with their spread.
fn values(read: &EvaluatedRun) -> String {
    let run = &read.run;
    let mut rows = vec![head(&[
        ("case", "ケース"),
        ("measure", "項目"),
        ("mean", "平均"),
        ("95 % interval", "95 % 区間"),
        ("minimum", "最小"),
        ("maximum", "最大"),
        ("n", "回数"),
    ])];
    for case in &run.cases {
        for measure in &run.measures {
            let Some(statistics) = Statistics::from_samples(&run.values(&case.id, &measure.id))
            else {
                continue;
            };
            let text =
                |value: f64| format_number(value, crate::number::decimal_places(statistics.mean));
            let unit = if measure.unit.is_empty() {
                String::new()
            } else {
                format!(" {}", escape_html(&measure.unit))
            };
            let interval = statistics.confidence_interval.map_or_else(
                || "–".to_owned(),
                |(low, high)| format!("{} – {}", text(low), text(high)),
            );
            rows.push(vec![
                bilingual_html(&case.description),
                bilingual_html(&measure.description),
                format!("{}{unit}", text(statistics.mean)),
                interval,
                text(statistics.min),
                text(statistics.max),
                statistics.sample_count.to_string(),
            ]);
        }
    }
    let heading = bilingual_html(&LocalizedText::new("All values", "すべての値"));
    let summary = bilingual_html(&LocalizedText::new(
        format!("{} rows", rows.len() - 1),
        format!("{} 行", rows.len() - 1),
    ));
    let files = bilingual_html(&LocalizedText::new(
        "Further files beside this page: run.json with all records, values.csv, and samples.csv \
         with every sample over time.",
        "このページの隣に、全記録 run.json、values.csv、全サンプル samples.csv があります。",
    ));
    format!(
        "<h2>{heading}</h2><details><summary>{summary}</summary>{}</details><p \
         class=soft>{files}</p>",
        table("values", &rows)
    )
}

fn failures(read: &EvaluatedRun) -> String {
    let failed: Vec<&Repetition> =
        read.run.repetitions.iter().filter(|part| part.failure.is_some()).collect();
    let noted: Vec<&Repetition> =
        read.run.repetitions.iter().filter(|part| !part.notes.is_empty()).collect();
    let mut html = String::new();
    if !failed.is_empty() {
        html += &format!(
            "<h2>{}</h2><ul>",
            bilingual_html(&LocalizedText::new("Failures", "失敗した測定"))
        );
        for part in failed {
            html += &format!(
                "<li>{}, {}: <code>{}</code></li>",
                escape_html(&part.case_id),
                part.repetition + 1,
                escape_html(part.failure.as_deref().unwrap_or_default())
            );
        }
        html += "</ul>";
    }
    if !noted.is_empty() {
        let mut noted_texts: Vec<&LocalizedText> = Vec::new();
        html += &format!("<h2>{}</h2><ul>", bilingual_html(&LocalizedText::new("Notes", "注記")));
        for words in noted.iter().flat_map(|part| &part.notes) {
            if !noted_texts.contains(&words) {
                html += &format!("<li>{}</li>", bilingual_html(words));
                noted_texts.push(words);
            }
        }
        html += "</ul>";
    }
    html
}

fn circumstances(read: &EvaluatedRun, quietness: &LocalizedText) -> String {
    let (run, machine) = (&read.run, &read.run.machine);
    let mut html = String::new();
    if run.origin == RunOrigin::Real {
        html +=
            &format!("<h2>{}</h2>", bilingual_html(&LocalizedText::new("The machine", "マシン")));
        let governor = machine.cpu_governor.clone().unwrap_or_else(|| "–".to_owned());
        let kvm = if machine.kvm { "KVM" } else { "–" };
        let rows = [
            (
                LocalizedText::new("CPU", "CPU"),
                format!(
                    "{}, {} × ({} / core)",
                    machine.cpu_model, machine.cpus, machine.threads_per_core
                ),
            ),
            (LocalizedText::new("memory", "メモリ"), format!("{} MiB", machine.memory_mib)),
            (
                LocalizedText::new("system", "システム"),
                format!("{}, Linux {}", machine.distribution, machine.kernel_release),
            ),
            (
                LocalizedText::new("virtualization", "仮想化"),
                format!("{}, {kvm}", machine.virtualization),
            ),
            (LocalizedText::new("governor", "ガバナー"), governor),
            (LocalizedText::new("Suimon", "Suimon"), machine.suimon_commit.clone()),
        ];
        let mut cells = vec![head(&[("", ""), ("", "")])];
        cells.extend(rows.map(|(words, text)| vec![bilingual_html(&words), escape_html(&text)]));
        cells.extend(
            machine
                .tool_versions
                .iter()
                .map(|(name, version)| vec![escape_html(name), escape_html(version)]),
        );
        html += &table("machine", &cells);
        html += &format!("<p>{}</p>", bilingual_html(quietness));
    }
    let heading = bilingual_html(&LocalizedText::new("Again", "再実行"));
    html + &format!("<h2>{heading}</h2><pre>{}</pre>", escape_html(&run.command))
}
