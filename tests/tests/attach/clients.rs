//! Clients that others wrote, with one request a connection and with several, on connections without a socket.

use afpa_tests::attach::{Attached, Lab, PORT};

use crate::socketless::{SYN, attach, count, run, visit};

/// A client in Go, one of two; the argument of each is a URL that ends with a slash.
const GO: &str = r#"
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

func get(client *http.Client, path string, length int) {
	response, err := client.Get(os.Args[1] + path)
	if err != nil {
		panic(err)
	}
	content, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || len(content) != length || strings.Trim(string(content), "sl") != "" {
		panic(fmt.Sprint(path, " ", len(content), " ", err))
	}
}

func main() {
	var all sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		all.Add(1)
		go func(once bool) {
			defer all.Done()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: once}}
			for turn := 0; turn < 100; turn++ {
				get(client, "small.html", 5)
				if turn%5 == 0 {
					get(client, "large.txt", 200000)
				}
			}
		}(worker%2 == 0)
	}
	all.Wait()
	fmt.Println("good")
}
"#;

const JAVA: &str = r#"
import java.net.*;
import java.net.http.*;

public class Main {
    static void get(HttpClient client, String url, int length) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url)).build();
        var content = client.send(request, HttpResponse.BodyHandlers.ofString()).body();
        if (content.length() != length || !content.replaceAll("[sl]", "").isEmpty())
            throw new Exception(url + " " + content.length());
    }

    static void getOnce(String url, int length) throws Exception {
        var connection = new URL(url).openConnection();
        try (var stream = connection.getInputStream()) {
            if (stream.readAllBytes().length != length)
                throw new Exception(url);
        }
    }

    public static void main(String[] arguments) throws Exception {
        var base = arguments[0];
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        for (int turn = 0; turn < 150; turn++) {
            get(client, base + "small.html", 5);
            getOnce(base + "small.html", 5);
            if (turn % 5 == 0) {
                get(client, base + "large.txt", 200000);
                getOnce(base + "large.txt", 200000);
            }
        }
        System.out.println("good");
    }
}
"#;

fn url() -> String {
    format!("http://10.77.0.1:{PORT}/")
}

/// nginx with a file of few bytes and one that is too long for an answer of the kernel, and the attachment to it.
fn attached(lab: &Lab) -> Option<Attached> {
    lab.file("small.html", "sssss");
    lab.file("large.txt", vec![b'l'; 200_000]);
    attach(lab)
}

/// Runs a program of one file by a command. None: SKIP was said.
fn good(lab: &Lab, name: &str, source: &str, how: &[&str]) -> Option<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, source).expect("written");
    let path = path.display().to_string();
    let (program, before) = how.split_first().expect("a program");
    let said = run(lab, program, &[before, &[&path, &url()]].concat())?;
    assert_eq!(said.trim(), "good");
    Some(())
}

#[test]
fn go_does_not_notice() {
    let lab = lab!();
    let Some(attached) = attached(&lab) else { return };
    if good(&lab, "main.go", GO, &["go", "run"]).is_some() {
        assert!(count(&attached, SYN) > 100, "{:#?}", attached.statistics());
    }
}

#[test]
fn java_does_not_notice() {
    let lab = lab!();
    let Some(attached) = attached(&lab) else { return };
    if good(&lab, "Main.java", JAVA, &["java", "-Dhttp.keepAlive=false"]).is_some() {
        assert!(count(&attached, SYN) > 50, "{:#?}", attached.statistics());
    }
}

/// A page of many parts, on the several connections that a browser opens at once.
#[test]
fn chromium_does_not_notice() {
    let lab = lab!();
    let parts: Vec<String> = (0..24).map(|number| format!("part{number}.js")).collect();
    for part in &parts {
        lab.file(part, format!("document.body.append('{part} ');"));
    }
    let scripts = |list: &[String]| -> String {
        list.iter().map(|part| format!("<script src=\"{part}\"></script>")).collect()
    };
    let page = format!("<!doctype html><html><body>{}</body></html>", scripts(&parts));
    lab.file("page.html", page);
    let Some(attached) = attached(&lab) else { return };
    let mut opened = 0;
    for _visit in 0..3 {
        let Some(dom) = visit(&lab, &format!("{}page.html", url())) else { return };
        for part in &parts {
            assert!(dom.contains(&format!("{part} ")), "{part} is missing in {dom}");
        }
        opened = count(&attached, SYN);
    }
    assert!(opened > 3, "{opened}: {:#?}", attached.statistics());
}
