//! Tests of `scry completions`, `scry man` and `--help`.

use std::process::Command;

use crate::support::Workplace;
use crate::transcript::Transcript;

#[test]
fn every_shell_has_completions() {
    let place = Workplace::without_driver();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let printed = place.command(&["completions", shell]).output().unwrap();
        assert!(printed.status.success(), "{printed:?}");
        let script = String::from_utf8(printed.stdout).unwrap();
        for word in ["completions", "doctor", "invocations"] {
            assert!(script.contains(word), "{word:?} is not in {script}");
        }
        let output = place.command(&["completions", shell, "--json"]).output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["result"]["shell"], shell);
        assert_eq!(document["result"]["script"], script);
    }
    place.scry(&["completions", "tcsh"]).exits_with(2).prints(&["tcsh", "bash", "fish"]);
}

#[test]
fn hidden_options_are_not_listed() {
    let place = Workplace::without_driver();
    let pages = ["bash", "zsh", "fish", "powershell", "elvish"].map(|shell| ["completions", shell]);
    for arguments in pages.iter().chain(&[["man", "fuzz"], ["fuzz", "--help"]]) {
        let printed = place.command(arguments).output().unwrap();
        assert!(printed.status.success(), "{arguments:?}: {printed:?}");
        let text = String::from_utf8(printed.stdout).unwrap().replace("\\-", "-");
        assert!(text.contains("hostile"), "{arguments:?}: {text}");
        for hidden in ["--child", "-l child ", "Internal"] {
            assert!(!text.contains(hidden), "{arguments:?}: {text}");
        }
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let name = "bash_completes_commands_and_options";
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped {name}: there is no bash");
        return;
    }
    let place = Workplace::without_driver();
    place.write("scry.bash", place.scry(&["completions", "bash"]).exits_with(0).stdout);
    let complete = |words: &str, last: usize| {
        let script = format!(
            ". ./scry.bash; COMP_WORDS=({words}); COMP_CWORD={last}; \
             _scry scry \"${{COMP_WORDS[{last}]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &script])
            .current_dir(place.path(""))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("scry ver", 1), "verify");
    assert_eq!(complete("scry run --see", 2), "--seed");
    assert_eq!(complete("scry completions pow", 2), "powershell");
}

#[test]
fn every_command_has_a_man_page() {
    let place = Workplace::without_driver();
    place.scry(&["man"]).exits_with(0).prints(&[".TH scry 1", "fuzz", "EXTRA"]);
    let page = place.scry(&["man", "run"]).exits_with(0).stdout;
    let page = page.replace("\\-", "-");
    for word in [".TH scry-run 1", "--invocations", "rand:TYPE:SHAPE", "saxpy.wgsl"] {
        assert!(page.contains(word), "{word:?} is not in {page}");
    }
    place.scry(&["man", "sun"]).exits_with(2).prints(&["no command `sun`", "devices, doctor"]);
    place.scry(&["man", "-o", "pages/man1"]).exits_with(0).prints(&["pages -> pages/man1"]);
    let document = place.scry(&["man", "-o", "again", "--json"]).exits_with(0).json();
    let files = document["result"]["files"].as_array().unwrap();
    assert!(files.len() > 10, "{document}");
    assert_eq!(place.read("pages/man1/scry-fuzz.1"), place.read("again/scry-fuzz.1"));
}

#[test]
fn help_begins_with_examples() {
    let mut transcript = Transcript::new("help");
    transcript.run(&["--help"]);
    let commands =
        ["devices", "doctor", "check", "reflect", "emit", "run", "verify", "fuzz", "cache"];
    for command in commands.iter().chain(&["completions", "man"]) {
        let help = transcript.place.command(&[command, "--help"]).output().unwrap().stdout;
        let help = String::from_utf8(help).unwrap();
        let [examples, usage, options] =
            ["Examples:\n  scry ", "\nUsage: ", "\nOptions:"].map(|part| help.find(part).unwrap());
        assert!(examples < usage && usage < options, "{help}");
        assert_eq!(examples, help.find("\n\n").unwrap() + 2, "{help}");
        transcript.add(&[command, "--help"], &help, 0);
    }
    transcript.compare();
}
