//! Command `top` on a terminal.

use core::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Paragraph};
use suimon_tables::top::{self, TopRates, tables};
use suimon_tables::units;

use crate::exit::Failure;
use crate::output::Context;

/// Longest time for which a thread waits for a key.
const KEY_WAIT: Duration = Duration::from_millis(50);

/// Shows rates until `q`, `Esc` or Ctrl-C. Restores the terminal in every case.
pub(super) async fn run(
    context: &Context,
    interval: Duration,
    shows: top::View,
) -> Result<(), Failure> {
    // If the first request fails, there is nothing to show, and the command ends with the error.
    let mut before = context.client.top().await?;
    let mut terminal = ratatui::try_init()?;
    let rendering = async {
        let mut view = View { shows, rates: None, trouble: None, scroll: 0 };
        loop {
            terminal.draw(|frame| view.draw(frame))?;
            if wait(&mut view, interval, || terminal.autoresize().is_ok()).await? {
                return Ok(());
            }
            match context.client.top().await {
                Ok(after) => {
                    view.rates = Some(TopRates::between(&before, &after));
                    view.trouble = None;
                    before = after;
                }
                // The daemon may restart in the meantime.
                Err(error) => view.trouble = Some(error.to_string()),
            }
        }
    };
    let result = rendering.await;
    ratatui::restore();
    result
}

/// Handles keys until the interval has passed or the terminal was resized. Returns true if the user
/// quits. A changed scroll position becomes visible when the caller draws again.
async fn wait(
    view: &mut View,
    interval: Duration,
    mut resized: impl FnMut() -> bool,
) -> Result<bool, Failure> {
    let end = tokio::time::Instant::now() + interval;
    while tokio::time::Instant::now() < end {
        let key = tokio::task::spawn_blocking(|| {
            if event::poll(KEY_WAIT)? { event::read().map(Some) } else { Ok(None) }
        })
        .await
        .map_err(|error| Failure::Usage(error.to_string()))??;
        match key {
            Some(Event::Key(key)) if key.kind == KeyEventKind::Press => match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(true),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                    return Ok(true);
                }
                KeyCode::Down | KeyCode::Char('j') => view.scroll = view.scroll.saturating_add(1),
                KeyCode::Up | KeyCode::Char('k') => view.scroll = view.scroll.saturating_sub(1),
                _ => {}
            },
            Some(Event::Resize(..)) => {
                resized();
                return Ok(false);
            }
            _ => {}
        }
    }
    Ok(false)
}

/// State of the screen: rates, view and scroll position.
struct View {
    shows: top::View,
    rates: Option<TopRates>,
    trouble: Option<String>,
    /// Number of lines of the first table that are scrolled out of view.
    scroll: u16,
}

impl View {
    fn draw(&mut self, frame: &mut Frame<'_>) {
        let [head, body] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(frame.area());
        frame.render_widget(self.head(), head);
        let Some(rates) = &self.rates else { return };
        let tables = tables(rates, self.shows).into_iter().map(|(title, table)| {
            let text = table.render();
            let height = u16::try_from(text.lines().count()).unwrap_or(u16::MAX);
            (title, text, height.saturating_add(1))
        });
        let tables: Vec<_> = tables.collect();
        // The first table is the longest and takes the remaining height.
        let heights = tables.iter().enumerate().map(|(index, (.., height))| match index {
            0 => Constraint::Min(3),
            _ => Constraint::Max(*height),
        });
        let areas = Layout::vertical(heights).split(body);
        let longest = tables.first().map_or(0, |(.., height)| *height);
        self.scroll = self.scroll.min(longest.saturating_sub(3));
        for (index, (area, (title, text, _))) in areas.iter().zip(&tables).enumerate() {
            let scroll = if index == 0 { self.scroll } else { 0 };
            draw_table(frame, *area, title, text, scroll);
        }
    }

    fn head(&self) -> Line<'_> {
        match (&self.trouble, &self.rates) {
            (Some(trouble), _) => Line::from(trouble.as_str()).red(),
            (None, Some(rates)) => Line::from(format!(
                "suimon top  {}  q quits, ↑ ↓ scroll",
                units::timestamp(rates.time_unix_ms)
            )),
            (None, None) => Line::from("suimon top  measuring …"),
        }
    }
}

/// Draws a table below its title. The table's header does not scroll.
fn draw_table(frame: &mut Frame<'_>, area: Rect, title: &str, text: &str, scroll: u16) {
    let block = Block::new().borders(Borders::TOP).title(title.bold());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [head, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(inner);
    let (titles, body) = text.split_once('\n').unwrap_or((text, ""));
    frame.render_widget(Paragraph::new(titles).style(Style::new().reversed()), head);
    frame.render_widget(Paragraph::new(Text::from(body)).scroll((scroll, 0)), rows);
}

#[cfg(test)]
#[path = "../../../suimon-tables/src/top/example.rs"]
mod example;

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::example::example;
    use super::*;

    fn showing(shows: top::View) -> View {
        View { shows, rates: Some(example()), trouble: None, scroll: 0 }
    }

    fn drawn(width: u16, height: u16, mut view: View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_shows_all_tables() {
        let view = showing(top::View::Rates);
        insta::assert_snapshot!(drawn(118, 25, view));
    }

    #[test]
    fn the_screen_shows_the_stages() {
        let view = showing(top::View::Stages);
        insta::assert_snapshot!(drawn(88, 9, view));
    }

    #[test]
    fn a_small_terminal_and_extreme_scrolling_cause_no_panic() {
        for (width, height) in [(1, 1), (10, 3), (40, 6), (200, 2)] {
            for shows in [top::View::Rates, top::View::Stages] {
                drawn(width, height, View { scroll: u16::MAX, ..showing(shows) });
            }
        }
    }

    #[test]
    fn an_error_is_shown_on_the_screen() {
        let trouble = Some("no daemon".to_owned());
        let view = View { rates: None, trouble, ..showing(top::View::Rates) };
        assert!(drawn(40, 3, view).contains("no daemon"));
    }
}
