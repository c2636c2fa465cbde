package notify

import (
	"context"
	"strings"
)

// slackText has the three characters that Slack reads as its own
// (https://docs.slack.dev/messaging/formatting-message-text#escaping).
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// sendSlack sends to an incoming webhook of Slack.
func sendSlack(ctx context.Context, o Options, m Message) error {
	text := slackText.Replace(m.Title + "\n" + m.Text)
	if m.Link != "" {
		text += "\n<" + m.Link + ">"
	}
	return postJSON(ctx, o, map[string]any{"text": text, "unfurl_links": false, "unfurl_media": false}, nil)
}

// sendTeams sends an Adaptive Card to a webhook of a workflow of Microsoft Teams. Its text is in
// runs, which have no markup.
func sendTeams(ctx context.Context, o Options, m Message) error {
	block := func(text, weight string) map[string]any {
		return map[string]any{"type": "RichTextBlock", "inlines": []any{map[string]any{"type": "TextRun", "text": text, "weight": weight}}}
	}
	card := map[string]any{"type": "AdaptiveCard", "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "version": "1.4", "body": []any{block(m.Title, "Bolder"), block(m.Text, "Default")}}
	if m.Link != "" {
		card["actions"] = []any{map[string]any{"type": "Action.OpenUrl", "title": "Open", "url": m.Link}}
	}
	return postJSON(ctx, o, map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}, nil)
}

// sendNtfy publishes to a topic of ntfy (https://docs.ntfy.sh/publish/).
func sendNtfy(ctx context.Context, o Options, m Message) error {
	headers := map[string]string{"Content-Type": "text/plain; charset=utf-8", "Title": header(m.Title)}
	if m.Link != "" {
		headers["Click"] = m.Link
	}
	if o.Secret != "" {
		headers["Authorization"] = "Bearer " + o.Secret
	}
	return post(ctx, o, []byte(m.Text), headers)
}
