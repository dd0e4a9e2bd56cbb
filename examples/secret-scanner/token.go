package main

import "github.com/weir-mcp/weir/guest"

// format is how the tokens of one kind are written: a prefix, and a body of
// characters of one set that is so long.
type format struct {
	prefix   string
	body     *set
	min, max int
	kind     string
	what     string // with its article
}

// formats are in the order in which they are tried at a place; the first that
// fits counts, so that the longer of two prefixes comes first.
var formats = []format{
	{"AKIA", &upper, 16, 16, "aws", "an AWS access key id"},
	{"ASIA", &upper, 16, 16, "aws", "an AWS temporary access key id"},
	{"AIza", &base64url, 35, 35, "google", "a Google API key"},
	{"GOCSPX-", &base64url, 28, 28, "google", "a Google OAuth client secret"},
	{"ya29.", &base64url, 40, 2048, "google", "a Google OAuth access token"},
	{"SG.", &sendgrid, 66, 66, "sendgrid", "a SendGrid API key"},
	{"SK", &hex, 32, 32, "twilio", "a Twilio API key"},
	{"dckr_pat_", &base64url, 27, 27, "docker", "a Docker access token"},
	{"dop_v1_", &hex, 64, 64, "digitalocean", "a DigitalOcean access token"},
	{"doo_v1_", &hex, 64, 64, "digitalocean", "a DigitalOcean OAuth token"},
	{"dor_v1_", &hex, 64, 64, "digitalocean", "a DigitalOcean refresh token"},
	{"ghp_", &alnum, 36, 251, "github", "a GitHub personal access token"},
	{"gho_", &alnum, 36, 251, "github", "a GitHub OAuth token"},
	{"ghu_", &alnum, 36, 251, "github", "a GitHub user token"},
	{"ghs_", &alnum, 36, 251, "github", "a GitHub server token"},
	{"ghr_", &alnum, 36, 251, "github", "a GitHub refresh token"},
	{"github_pat_", &word, 82, 82, "github", "a GitHub fine-grained personal access token"},
	{"glpat-", &gitlab, 20, 320, "gitlab", "a GitLab personal access token"},
	{"gldt-", &gitlab, 20, 320, "gitlab", "a GitLab deploy token"},
	{"glrt-", &gitlab, 20, 320, "gitlab", "a GitLab runner token"},
	{"glptt-", &gitlab, 40, 320, "gitlab", "a GitLab trigger token"},
	{"hf_", &alnum, 30, 40, "huggingface", "a Hugging Face token"},
	{"hooks.slack.com/services/T", &path, 30, 80, "slack", "a Slack webhook"},
	{"npm_", &alnum, 36, 36, "npm", "an npm access token"},
	{"pypi-", &base64url, 85, 1024, "pypi", "a PyPI API token"},
	{"rk_live_", &alnum, 16, 255, "stripe", "a Stripe restricted key"},
	{"sk_live_", &alnum, 16, 255, "stripe", "a Stripe secret key"},
	{"whsec_", &base64, 32, 64, "stripe", "a Stripe webhook secret"},
	{"sk-ant-", &base64url, 32, 255, "anthropic", "an Anthropic API key"},
	{"sk-proj-", &base64url, 32, 255, "openai", "an OpenAI project key"},
	{"sk-svcacct-", &base64url, 32, 255, "openai", "an OpenAI service account key"},
	{"sk-admin-", &base64url, 32, 255, "openai", "an OpenAI admin key"},
	{"sk-", &alnum, 40, 64, "openai", "an OpenAI API key"},
	{"xapp-", &slack, 24, 255, "slack", "a Slack app token"},
	{"xoxa-", &slack, 20, 255, "slack", "a Slack token"},
	{"xoxb-", &slack, 20, 255, "slack", "a Slack bot token"},
	{"xoxp-", &slack, 20, 255, "slack", "a Slack user token"},
	{"xoxr-", &slack, 20, 255, "slack", "a Slack refresh token"},
	{"xoxs-", &slack, 20, 255, "slack", "a Slack session token"},
	{"xoxe-", &slack, 20, 255, "slack", "a Slack refresh token"},
	{"xoxe.", &slackRotated, 20, 400, "slack", "a Slack rotated token"},
	{"AccountKey=", &base64, 88, 88, "azure", "an Azure storage account key"},
	{"SharedAccessKey=", &base64, 44, 88, "azure", "an Azure shared access key"},
	{"sig=", &urlEncoded, 44, 64, "azure", "the signature of an Azure shared access URL"},
}

// byFirst finds the formats that begin with a byte.
var byFirst = func() (t [256][]format) {
	for _, f := range formats {
		t[f.prefix[0]] = append(t[f.prefix[0]], f)
	}
	return t
}()

// distinct is how many different characters a real token has at the very least;
// "ghp_" and thirty-six times "x" in a manual has one.
const distinct = 6

// tokenAt returns the secret that begins at s[i], and where it ends.
func tokenAt(s string, i int) (secret, int) {
	for f := range byFirst[s[i]] {
		f := &byFirst[s[i]][f]
		if len(s)-i < len(f.prefix)+f.min || s[i:i+len(f.prefix)] != f.prefix {
			continue
		}
		from := i + len(f.prefix)
		n := f.body.run(s[from:], f.max+1)
		if n < f.min || n > f.max || varied(s[from:from+n]) < distinct {
			continue
		}
		return secret{f.kind, f.what, guest.SeverityError}, from + n
	}
	return secret{}, 0
}

// varied counts the different characters of a short text.
func varied(s string) int {
	var seen [256]bool
	n := 0
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			n++
		}
	}
	return n
}
