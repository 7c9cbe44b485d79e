//! The results: a table, goals that pass or fail, and JSON lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::stats::Summary;

/// Maximum ratio to wgpu's time on software devices: not slower, with a tolerance for noise.
const MAX_SOFTWARE_RATIO: f64 = 1.05;

/// The subject of a comparison.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Name of the benchmark.
    pub bench: &'a str,
    /// Size, as text.
    pub size: &'a str,
    /// Bytes moved, for results shown as a bandwidth.
    pub bytes: Option<f64>,
    /// The goal for our time.
    pub rule: Rule,
}

/// The goal for the ratio of our time to wgpu's.
#[derive(Clone, Copy)]
pub enum Rule {
    /// The ratio is reported, without a goal.
    Report,
    /// Not slower on software devices; no goal on GPUs.
    NotSlower,
    /// Maximum ratio on GPUs; not slower on software devices.
    AtMost(f64),
}

/// A bound on a number.
#[derive(Clone, Copy)]
pub enum Goal {
    /// At most this number.
    AtMost(f64),
    /// At least this number.
    AtLeast(f64),
}

/// One measurement of one peer.
#[derive(Serialize)]
struct Row<'a> {
    peer: &'a str,
    device: &'a str,
    bench: &'a str,
    size: &'a str,
    median_us: f64,
    p10_us: f64,
    p90_us: f64,
    gbps: Option<f64>,
    samples: usize,
}

/// One goal.
#[derive(Serialize)]
struct Verdict<'a> {
    goal: &'a str,
    device: &'a str,
    value: f64,
    limit: f64,
    pass: bool,
}

/// Prints the results, and collects the outcomes of goals.
pub struct Report {
    device: String,
    software: bool,
    json: Option<BufWriter<File>>,
    verdicts: Vec<(String, bool)>,
}

impl Report {
    /// Starts a report; JSON lines go to the file `json`.
    pub fn new(device: &str, software: bool, json: Option<&Path>) -> Result<Self> {
        let create = |path: &Path| {
            File::create(path).with_context(|| format!("{} cannot be written", path.display()))
        };
        let json = json.map(create).transpose()?.map(BufWriter::new);
        Ok(Self { device: device.to_owned(), software, json, verdicts: Vec::new() })
    }

    /// Prints the heading of a scenario.
    pub fn heading(&self, text: &str) {
        println!("\n{text}");
    }

    /// Reports the seconds of all peers, ours first, then wgpu's; `None` where a peer lacks the
    /// call.
    pub fn compare(
        &mut self,
        subject: Subject<'_>,
        results: &[(&str, Option<Summary>)],
    ) -> Result<()> {
        let title = format!("{} {}", subject.bench, subject.size);
        for (peer, summary) in results {
            match summary {
                Some(summary) => self.row(&title, subject, peer, *summary)?,
                None => println!("  {title:<36} {peer:<13} no such call"),
            }
        }
        if let [(_, Some(ours)), (_, Some(theirs)), ..] = results {
            let limit = match (self.software, subject.rule) {
                (_, Rule::Report) | (false, Rule::NotSlower) => None,
                (true, _) => Some(MAX_SOFTWARE_RATIO),
                (false, Rule::AtMost(limit)) => Some(limit),
            };
            let ratio = ours.median / theirs.median;
            let what = format!("{title}: time / wgpu's");
            match limit {
                Some(limit) => self.check_goal(&what, ratio, Goal::AtMost(limit))?,
                None => println!("    {what} = {ratio:.3}"),
            }
        }
        Ok(())
    }

    /// Reports the seconds of one peer, without a comparison.
    pub fn row(
        &mut self,
        title: &str,
        subject: Subject<'_>,
        peer: &str,
        time: Summary,
    ) -> Result<()> {
        let gbps = subject.bytes.map(|bytes| bytes / time.median / 1e9);
        let speed = gbps.map_or(String::new(), |gbps| format!("{gbps:9.2} GB/s"));
        let [median, p10, p90] = [time.median, time.p10, time.p90].map(readable);
        println!("  {title:<36} {peer:<13} {median:>10}  ({p10} to {p90}) {speed}");
        self.json_line(|device| Row {
            peer,
            device,
            bench: subject.bench,
            size: subject.size,
            median_us: time.median * 1e6,
            p10_us: time.p10 * 1e6,
            p90_us: time.p90 * 1e6,
            gbps,
            samples: time.samples,
        })
    }

    /// Compares a number with a goal, and reports the outcome.
    pub fn check_goal(&mut self, what: &str, value: f64, goal: Goal) -> Result<()> {
        let (pass, sign, limit) = match goal {
            Goal::AtMost(limit) => (value <= limit, '≤', limit),
            Goal::AtLeast(limit) => (value >= limit, '≥', limit),
        };
        let line = format!("{what} = {value:.3}, goal {sign} {limit}");
        println!("    {} {line}", verdict(pass));
        self.json_line(|device| Verdict { goal: what, device, value, limit, pass })?;
        self.verdicts.push((line, pass));
        Ok(())
    }

    /// Like [`Report::check_goal`] on GPUs; on software devices only prints the number.
    pub fn check_goal_on_gpus(&mut self, what: &str, value: f64, goal: Goal) -> Result<()> {
        if self.software {
            println!("    {what} = {value:.3}");
            return Ok(());
        }
        self.check_goal(what, value, goal)
    }

    /// Prints all goals again; returns true if all are reached.
    pub fn finish(mut self) -> Result<bool> {
        println!("\nGoals on {}", self.device);
        for (line, pass) in &self.verdicts {
            println!("  {} {line}", verdict(*pass));
        }
        let failed = self.verdicts.iter().filter(|(_, pass)| !pass).count();
        println!("{} reached, {failed} missed", self.verdicts.len() - failed);
        if let Some(json) = &mut self.json {
            json.flush()?;
        }
        Ok(failed == 0)
    }

    fn json_line<'a, T: Serialize>(&'a mut self, line: impl FnOnce(&'a str) -> T) -> Result<()> {
        if let Some(json) = &mut self.json {
            serde_json::to_writer(&mut *json, &line(&self.device))?;
            writeln!(json)?;
        }
        Ok(())
    }
}

fn verdict(pass: bool) -> &'static str {
    if pass { "PASS" } else { "FAIL" }
}

/// Formats seconds with a suitable unit.
fn readable(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(software: bool, json: &Path) -> Report {
        Report::new("a device", software, Some(json)).unwrap()
    }

    fn summary(median: f64) -> Option<Summary> {
        Some(Summary { median, p10: median, p90: median, samples: 20 })
    }

    #[test]
    fn gpus_and_software_have_different_goals() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let subject = Subject { bench: "trip", size: "1", bytes: None, rule: Rule::AtMost(0.5) };
        for (software, ours, reached) in
            [(false, 0.4, true), (false, 0.9, false), (true, 0.9, true), (true, 1.2, false)]
        {
            let mut report = report(software, &path);
            report.compare(subject, &[("us", summary(ours)), ("wgpu", summary(1.0))]).unwrap();
            assert_eq!(report.finish().unwrap(), reached, "{software} {ours}");
        }
        let lines = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0]["median_us"], 1.2e6);
        assert_eq!(lines[2]["pass"], false);
    }

    #[test]
    fn missing_calls_have_no_goal() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = report(false, &folder.path().join("lines"));
        let subject = Subject { bench: "trip", size: "1", bytes: None, rule: Rule::AtMost(0.5) };
        report.compare(subject, &[("us", summary(9.0)), ("wgpu", None)]).unwrap();
        assert!(report.finish().unwrap());
    }
}
