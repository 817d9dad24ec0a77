;;; emacs.el --- One sitting of agent-shell with Garuda, in batch  -*- lexical-binding: t; -*-

;; Run by emacs.mjs, which gives the entry of docs/editors.md as a file and the answer to each question. Nothing of
;; agent-shell's screen is needed: its own events and its responder tell what a person would see and press.

(require 'agent-shell)
(require 'seq)

(setq agent-shell-session-strategy 'new
      agent-shell-show-welcome-message nil
      ;; A person answers y or n; here the file of answers does, one a question.
      agent-shell-permission-responder-function
      (lambda (permission)
        (let* ((kind (pop garuda-answers))
               (choice (seq-find (lambda (one) (equal (map-elt one :kind) kind))
                                 (map-elt permission :options))))
          (push (cons 'asked (format "%s" (map-nested-elt permission '(:tool-call :title)))) garuda-seen)
          (when choice
            (funcall (map-elt permission :respond) (map-elt choice :option-id))
            t))))

(defvar garuda-answers (split-string (getenv "EMACS_ANSWERS") "," t))
(defvar garuda-seen nil "What happened, newest first: (kind . text).")

(defun garuda-wait (what until)
  "Wait for UNTIL to hold; end with an error that names WHAT after 60 seconds."
  (let ((end (+ (float-time) 60)))
    (while (not (funcall until))
      (when (> (float-time) end)
        (error "Not within 60 s: %s; seen: %S" what (reverse garuda-seen)))
      (accept-process-output nil 0.05))))

(defun garuda-count (kind)
  "How many things of KIND were seen."
  (seq-count (lambda (one) (eq (car one) kind)) garuda-seen))

(load (getenv "EMACS_ENTRY") nil t)
(let* ((config (seq-find (lambda (one) (eq (map-elt one :identifier) 'garuda)) agent-shell-agent-configs))
       (_ (unless config (error "The entry makes no agent called garuda")))
       (buffer (agent-shell-start :config config))
       (turns 0))
  (agent-shell-subscribe-to
   :shell-buffer buffer
   :on-event
   (lambda (event)
     (let ((data (map-elt event :data)))
       (pcase (map-elt event :event)
         ('agent-message-chunk
          (push (cons 'text (or (map-elt data :text-chunk) "")) garuda-seen))
         ('turn-complete
          (push (cons 'end (format "%s" (map-elt data :stop-reason))) garuda-seen))
         ('permission-response
          (push (cons 'answered (format "%s" (map-elt data :option-id))) garuda-seen))))))
  (garuda-wait "a session"
               (lambda () (map-nested-elt (buffer-local-value 'agent-shell--state buffer) '(:session :id))))
  (dolist (prompt (split-string (getenv "EMACS_PROMPTS") "\n" t))
    (setq turns (1+ turns))
    (with-current-buffer buffer
      (garuda-wait "a free prompt" (lambda () (not (shell-maker-busy))))
      (agent-shell-insert :text prompt :submit t :no-focus t :shell-buffer buffer))
    (garuda-wait (format "the end of turn %d" turns) (lambda () (>= (garuda-count 'end) turns))))
  ;; The shell shows the answers too, not only its events.
  (push (cons 'buffer (with-current-buffer buffer (buffer-substring-no-properties (point-min) (point-max)))) garuda-seen)
  (with-temp-file (getenv "EMACS_REPORT")
    (insert (json-encode (vconcat (mapcar (lambda (one) (vector (symbol-name (car one)) (cdr one)))
                                          (reverse garuda-seen))))))
  (kill-buffer buffer))

;;; emacs.el ends here
