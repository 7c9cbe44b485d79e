//! Golden tests of command lines and their output, in `transcripts/NAME.txt`. `SCRY_BLESS=1`
//! rewrites these files.

use std::fs;

use crate::support::{Workplace, repository};

/// Command lines that are run sequentially in a temporary folder, without any driver.
pub struct Transcript {
    pub place: Workplace,
    name: &'static str,
    text: String,
    /// Texts that differ between machines, and their placeholders.
    masks: Vec<(String, &'static str)>,
}

impl Transcript {
    pub fn new(name: &'static str) -> Self {
        let place = Workplace::without_driver();
        let devices = place.scry(&["devices", "--json"]).exits_with(0).json();
        let cpu = devices["result"]["devices"][0]["name"].as_str().expect("a name").to_owned();
        let memory = devices["result"]["devices"][0]["memory_bytes"].as_f64().expect("a number");
        // With the parenthesis after it, so that only the size of the device's memory matches.
        let memory = format!("{:.1} GiB)", memory / f64::from(1 << 30));
        let folder = place.path("").display().to_string();
        let masks = vec![(folder, "FOLDER/"), (cpu, "CPU"), (memory, "MEMORY)")];
        Self { place, name, text: String::new(), masks }
    }

    /// Runs a command line and adds it, with its output and its exit code.
    pub fn run(&mut self, arguments: &[&str]) {
        let outcome = self.place.scry(arguments);
        self.add(arguments, &format!("{}{}", outcome.stdout, outcome.stderr), outcome.code);
    }

    /// Adds a command line with its output and its exit code.
    pub fn add(&mut self, arguments: &[&str], output: &str, code: i32) {
        let mut masked = output.to_owned();
        for (text, mask) in &self.masks {
            masked = masked.replace(text, mask);
        }
        let line = arguments.join(" ");
        self.text += &format!("$ scry {line}\n{}[exit code {code}]\n\n", mask_times(&masked));
    }

    /// Compares with the golden file.
    #[track_caller]
    pub fn compare(self) {
        let path = format!("crates/scry-cli/tests/cli/transcripts/{}.txt", self.name);
        let path = repository(&path);
        if std::env::var_os("SCRY_BLESS").is_some_and(|value| value == "1") {
            fs::write(&path, &self.text).expect("the golden file can be written");
            return;
        }
        let golden = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; SCRY_BLESS=1 writes it", path.display()));
        let mut lines = golden.lines().zip(self.text.lines()).enumerate();
        if let Some((line, (old, new))) = lines.find(|(_, (old, new))| old != new) {
            let (path, line) = (path.display(), line + 1);
            panic!("{path}:{line}: was `{old}`, is `{new}`; SCRY_BLESS=1 accepts the change");
        }
        let (old, new, path) = (golden.len(), self.text.len(), path.display());
        assert_eq!(old, new, "{path}: its length differs; SCRY_BLESS=1 accepts the change");
    }
}

/// Replaces each time whose number and unit are words of their own, such as `5 s` or `1.25 ms,`, by
/// `#` and the punctuation after the unit. Times in command lines and messages, such as `60s` and
/// `(5 s)`, are kept: they do not vary.
fn mask_times(text: &str) -> String {
    let is_unit = |word: &str| {
        let unit = word.trim_end_matches(|c: char| !c.is_alphabetic());
        ["s", "ms", "µs"].contains(&unit)
    };
    let lines = text.split_inclusive('\n').map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let masked = words.iter().enumerate().map(|(at, word)| {
            let next = words.get(at + 1).copied().unwrap_or_default();
            match word.parse::<f64>() {
                Ok(_) if is_unit(next) => "#",
                // Removes the unit, and keeps the punctuation after it.
                _ if is_unit(word) && at > 0 && words[at - 1].parse::<f64>().is_ok() => {
                    word.trim_start_matches(char::is_alphabetic)
                }
                _ => word,
            }
        });
        // Each `#` is followed by a space and the rest of the unit's word.
        masked.collect::<Vec<_>>().join(" ").replace("# ", "#")
    });
    lines.collect()
}

#[test]
fn times_are_masked() {
    assert_eq!(mask_times("a  1.25 ms, 3 µs; (5 s) 60s\n7 s\n"), "a  #, #; (5 s) 60s\n#\n");
}
