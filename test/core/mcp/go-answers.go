// Answers of Go's encoding/json, as an MCP server in Go reads messages: `go run go-answers.go < messages > answers`.
// One message a line in, one JSON line out: the operation, or null if the message is refused.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type message struct {
	Method string `json:"method"`
	Params struct {
		Name          string `json:"name"`
		URI           string `json:"uri"`
		Notifications struct {
			ResourceSubscriptions []string `json:"resourceSubscriptions"`
		} `json:"notifications"`
		Ref struct {
			Type string `json:"type"`
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"ref"`
	} `json:"params"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var read message
		if json.Unmarshal(lines.Bytes(), &read) != nil {
			fmt.Println("null")
			continue
		}
		p := read.Params
		answer, _ := json.Marshal([]any{read.Method, p.Name, p.URI, p.Notifications.ResourceSubscriptions, p.Ref.Name, p.Ref.URI})
		fmt.Println(string(answer))
	}
}
